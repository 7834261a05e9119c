"""The SQL of README.md, as it is pasted into a client."""

import re
from pathlib import Path

from tests.unit.sql.served import serving

README = Path(__file__).parents[4] / "README.md"


def test_the_sql_of_the_readme_runs_as_pasted(tmp_path: Path) -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", README.read_text(), re.DOTALL)
    with serving(tmp_path) as served:
        answers = {
            piece: served.root.execute(piece.encode()) for piece in block.split(";\n") if piece.strip()
        }
    (past,) = [answer.fetchall() for piece, answer in answers.items() if "AS OF SYSTEM TIME" in piece]
    assert [(owner, str(balance)) for owner, balance in past] == [("ann", "90.00"), ("bob", "60.00")]
