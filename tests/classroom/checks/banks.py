"""All banks together: right answers to every check, and wrong ones with what is said about each."""

from importlib import import_module
from pathlib import Path

BANKS = [import_module(path.stem) for path in sorted(Path(__file__).parent.glob("bank_*.py"))]
RIGHT = {check: pieces for bank in BANKS for check, pieces in bank.RIGHT.items()}
WRONG = [(check, *answer) for bank in BANKS for check, answers in bank.WRONG.items() for answer in answers]
