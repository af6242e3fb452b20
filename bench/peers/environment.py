"""N Pleach environments through the C interface of `bridge/`: numpy looks at the Rust buffers where they lie, nothing is copied."""

import ctypes
from pathlib import Path

import numpy as np

LIBRARY = Path(__file__).parent / "bridge/target/release/libpleach_bridge.so"

SIZES = ["num_envs", "num_global", "num_candidates", "num_features"]
ARRAYS = {
    "global": (np.float32, "g"), "candidates": (np.float32, "cf"), "mask": (np.bool_, "c"), "reward": (np.float32, ""),
    "terminated": (np.bool_, ""), "truncated": (np.bool_, ""), "dt_s": (np.float64, ""),
    "final_global": (np.float32, "g"), "final_candidates": (np.float32, "cf"), "final_mask": (np.bool_, "c"),
}


class _Buffers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in SIZES] + [(name, ctypes.c_void_p) for name in ARRAYS]


def _library():
    library = ctypes.CDLL(str(LIBRARY))
    handle = ctypes.c_void_p
    for name, result, arguments in [
        ("new", handle, [ctypes.c_char_p, ctypes.c_size_t]), ("buffers", _Buffers, [handle]),
        ("reset", ctypes.c_int, [handle, ctypes.c_void_p]), ("step", ctypes.c_int, [handle, ctypes.c_void_p]),
        ("message", ctypes.c_char_p, [handle]), ("free", None, [handle]),
    ]:
        function = getattr(library, f"pleach_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Environments:
    """N environments that step together. `global`, `candidates`, `mask`, `reward`, `terminated`, `truncated`, `dt_s` and
    `final_*` of `arrays` are views that the next step overwrites; an ended episode has begun anew in the same step."""

    def __init__(self, env_id, num_envs):
        self._library = _library()
        self._handle = self._library.pleach_new(env_id.encode(), num_envs)
        if not self._handle:
            raise ValueError(f"no environment {env_id}")
        buffers = self._library.pleach_buffers(self._handle)
        self.num_envs, self.num_global, self.num_candidates, self.num_features = (getattr(buffers, n) for n in SIZES)
        sizes = {"g": self.num_global, "c": self.num_candidates, "f": self.num_features}
        self.arrays = {}
        for name, (kind, shape) in ARRAYS.items():
            shape = (num_envs, *(sizes[letter] for letter in shape))
            num_bytes = int(np.prod(shape)) * np.dtype(kind).itemsize
            memory = (ctypes.c_char * num_bytes).from_address(getattr(buffers, name))
            self.arrays[name] = np.frombuffer(memory, dtype=kind).reshape(shape)

    def _check(self, status):
        if status:
            raise RuntimeError(self._library.pleach_message(self._handle).decode())

    def reset(self, seeds):
        seeds = np.ascontiguousarray(seeds, dtype=np.uint64)
        assert len(seeds) == self.num_envs
        self._check(self._library.pleach_reset(self._handle, seeds.ctypes.data))

    def step(self, actions):
        actions = np.ascontiguousarray(actions, dtype=np.uintp)
        assert len(actions) == self.num_envs
        self._check(self._library.pleach_step(self._handle, actions.ctypes.data))

    def close(self):
        self.arrays = {}
        self._library.pleach_free(self._handle)
        self._handle = None
