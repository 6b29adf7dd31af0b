"""What may go wrong where several processes train together. Nothing here needs PyTorch."""


class LostProcessError(RuntimeError):
    """Another of the processes is gone."""


class ElsewhereError(RuntimeError):
    """The first process has failed, and says why itself."""
