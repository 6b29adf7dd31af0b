"""Changes of answers that make others of them."""


def with_forward(base, forward):
    """Return a class of layers that computes something else."""
    return type(f"Other{base.__name__}", (base,), {"forward": forward})


def with_start(base, change):
    """Return a class of layers that is changed as soon as it is made."""

    def made(*arguments, **named):
        module = base(*arguments, **named)
        change(module)
        return module

    return made


def then(function, change):
    """Return a function whose result is changed."""
    return lambda *arguments: change(function(*arguments))


def right_with_options(wrong, right, count):
    """Return an answer that is right as soon as it is called with more arguments than so many."""
    return lambda *arguments: (wrong if len(arguments) <= count else right)(*arguments)


def variant(function, **changes):
    """Return a function with some of its steps done in another way."""
    return lambda *arguments: function(*arguments, **changes)
