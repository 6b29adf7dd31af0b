"""Cells that reach for the grading instead of the task, with a word of what is said about them."""

RIGHT = "def attention(q, k, v):\n    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v\n"

ATTACKS = {
    "endless loop in a cell": ("while True:\n    pass", "did not come to an end"),
    "endless loop in the answer": (
        "def attention(q, k, v):\n    while True:\n        pass",
        "not come to an end",
    ),
    "endless loop that prints": ("while True:\n    print('still here')", "did not come to an end"),
    "exit without cleaning up": ("import os\nos._exit(0)", "os._exit"),
    "exit in the answer": ("import os\ndef attention(q, k, v):\n    os._exit(0)", "os._exit"),
    "exit through the right answer": (RIGHT + "import os, atexit\natexit.register(os._exit, 0)", "os._exit"),
    "sys.exit": ("import sys\nsys.exit(0)", "sys.exit"),
    "crash": ("import ctypes\nctypes.string_at(0)", "ctypes"),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "os.kill"),
    "20 GB in a cell": ("x = bytearray(20_000_000_000)\n" + RIGHT, "MemoryError"),
    "20 GB of a tensor": ("x = torch.ones(5_000_000_000)\n" + RIGHT, "can't allocate memory"),
    "20 GB in the answer": ("def attention(q, k, v):\n    return torch.ones(5_000_000_000)", "memory"),
    "patched check": (
        "from vit_classroom import checks\nchecks.attention = lambda f, **k: print('fine')",
        "changes checks.attention",
    ),
    "patched sheet": ("sheet.check = lambda *a, **k: None", "changes sheet.check"),
    "another sheet": ("class sheet:\n    check = staticmethod(print)", "`sheet` another meaning"),
    "patched torch": ("import torch\ntorch.allclose = lambda *a, **k: True", "changes torch.allclose"),
    "patched module of the package": (
        "import vit_classroom.checks.report as r\nr.same = lambda *a: True\n"
        "def attention(q, k, v):\n    return v",
        "changes r.same",
    ),
    "redefined assert": ("class AssertionError(Exception):\n    pass", "`AssertionError` another meaning"),
    "redefined exception": ("CheckFailed = KeyboardInterrupt = Exception", "`KeyboardInterrupt` another"),
    "printed mark": ("print('✓ attention: values and gradients agree with the package')", "mark of a passed"),
    "deleted tests": ("import os, glob\nfor path in glob.glob('*.ipynb'):\n    os.remove(path)", "os.remove"),
    "own profiler": (
        "import sys\nfrom vit_from_scratch.model.attention import explicit_attention\n"
        "def attention(q, k, v):\n    sys.setprofile(None)\n    return explicit_attention(q, k, v)",
        "sys.setprofile",
    ),
    "the package's answer": (
        "from vit_from_scratch.model.attention import explicit_attention as attention",
        "imports vit_from_scratch.model.attention.explicit_attention",
    ),
    "the package's answer, wrapped": (
        "import vit_from_scratch.model.attention as m\n"
        "def attention(q, k, v):\n    return m.explicit_attention(q, k, v)",
        "imports vit_from_scratch.model.attention",
    ),
    "the package's source": (
        "import inspect\nfrom vit_from_scratch.model import attention as m\n"
        "exec(inspect.getsource(m.explicit_attention))\nattention = explicit_attention",
        "exec",
    ),
    "a proxy of its own": (
        "class Always:\n    def __call__(self, *a):\n        return Always()\n"
        "    def __eq__(self, other):\n        return True\nattention = Always()",
        "",
    ),
    "a tensor that is equal to all": (
        "class Same(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, *a, **k):\n"
        "        return True\ndef attention(q, k, v):\n    return v.as_subclass(Same)",
        "",
    ),
}
"""Each leaves `attention` without a right answer, except one below."""
RIGHT_ALL_THE_SAME = "exit through the right answer"
"""What this hands in is right: a person looks at it, and decides."""
