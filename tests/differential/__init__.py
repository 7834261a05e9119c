"""Generated statements asked of Tenure and of PostgreSQL, which have to answer alike.

    values, words        texts of each type; what functions are given
    expressions, calls   typed expressions; calls of every function that `expr` lists
    queries, shapes      SELECTs: calls, aggregates, windows; joins, subqueries, WITH, set operations
    writes, mistakes     DML on tables with all kinds of constraints; what has to fail
    world                the tables, and their rows
    sides, comparison    asking both; what counts as the same answer
    batches              cursors, views, tables that are made and changed
    texts, time_texts    texts that types accept or do not; `text_run` asks both sides about them
    run                  a run of many statements by seed; failures as scripts
    conversations        messages by seed; `wire_scripts` has known ones, `wire_sides` says them
    known.sql            what once was answered wrongly
    transactions         whole scripts: blocks, savepoints, definitions, cursors; one node and two

Walk: `test_differential`, `test_texts`, `test_conversations` and `transactions.test_transactions` run few,
`python -m tests.differential` as many as wished.
"""
