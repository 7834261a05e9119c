"""Whole scripts of one client or two, played by PostgreSQL and by Tenure, which have to answer alike.

    steps        a script: which client says what
    catalog      what is defined, as PostgreSQL's catalog tells it
    literals     few values of few types, so that rows meet
    definitions  CREATE, ALTER, DROP and TRUNCATE of tables
    objects      indexes, views, sequences, types, schemas
    rows         INSERT, UPDATE, DELETE, COPY, SELECT
    episodes     what people do in one block: clean up and constrain, swap tables, replace columns
    talk         what depends on the session: cursors, prepared statements, read-only modes
    writer       writes a script, asking PostgreSQL as it goes: blocks, savepoints, errors in blocks
    cluster      one node or two of Tenure; the second one leases every table
    play         plays a script here, and judges each answer by PostgreSQL's
    shrinking    leaves out of a failing script what it does not need
    run          many scripts by seed

Walk: `test_transactions` plays few, `python -m tests.differential --scripts 2000` as many as wished.
"""
