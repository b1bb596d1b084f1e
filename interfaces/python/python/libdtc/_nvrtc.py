"""Names the NVRTC that is a package of this environment, where the compiled part would not look for it.

It looks in the environment that the shell has entered, and in the folders of the system. An interpreter that is started by its path has
neither.
"""

import os
import sys

# Of the packages nvidia-cuda-nvrtc and nvidia-cuda-nvrtc-cu12, newest first.
_LIBRARIES = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")


def _found():
    for folder in sys.path:
        for library in _LIBRARIES:
            path = os.path.join(folder, "nvidia", library)
            if os.path.isfile(path):
                return path
    return None


if "DTC_NVRTC" not in os.environ and (_path := _found()):
    os.environ["DTC_NVRTC"] = _path
