"""What a command says: one that must succeed, and one that must fail."""

from vit_lab.cli import main


def done(capsys, *arguments: object) -> str:
    """Run a command that must succeed, and return what it prints."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def failed(capsys, *arguments: object, code: int = 2) -> str:
    """Run a command that must fail, by default as wrong input does, and return its one line, a short one."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == code
    out, err = capsys.readouterr()
    assert not out.strip() or out.endswith(". --set changes them.\n"), "nothing but settings that were chosen"
    assert err.startswith("vit: ")
    assert err.count("\n") == 1
    assert len(err) < 1200
    return err
