"""The programs that measuring needs, where they are, and what a row says of them."""
import datetime
import os
import pathlib
import re
import shutil
import subprocess

COMPUTE_CAPABILITY = "9.0"


def find(name):
    """CUDA_HOME/bin if CUDA_HOME is set, else PATH, else /usr/local/cuda/bin. None: not there."""
    home = os.environ.get("CUDA_HOME")
    if home:
        return shutil.which(name, path=str(pathlib.Path(home) / "bin"))
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def tool(name):
    return find(name) or name


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def gpu_facts():
    """Name, driver and compute capability of the first GPU; empty texts without one."""
    line = output_of("nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader").split("\n")[0]
    return (line.split(", ") + ["", "", ""])[:3]


def provenance():
    gpu, driver, _ = gpu_facts()
    release = re.search(r"release ([\d.]+)", output_of(tool("nvcc"), "--version"))
    ncu = re.search(r"Version ([\d.]+)", output_of(tool("ncu"), "--version"))
    return {"gpu": gpu, "driver": driver, "cuda": release.group(1) if release else "", "ncu": ncu.group(1) if ncu else "",
            "date": datetime.date.today().isoformat()}


def what_is_missing(own, foreign, ncu):
    """Texts, one for each thing that this machine lacks to build, run and profile the kernels."""
    missing = []
    if own and not find("nvcc"):
        missing.append("nvcc (CUDA 12.8 or later; looked in CUDA_HOME or PATH)")
    if own:
        missing += [name for name in ("cmake", "ninja") if not shutil.which(name)]
    gpu, _, capability = gpu_facts()
    if not gpu:
        missing.append("a GPU (nvidia-smi shows none)")
    elif own and capability != COMPUTE_CAPABILITY:
        missing.append(f"a GPU of compute capability {COMPUTE_CAPABILITY} ({gpu} has {capability})")
    if foreign and output_of("python3", "-c", "import torch, triton; print('there')") != "there":
        missing.append("PyTorch and Triton (python3 cannot import them)")
    if ncu and not find("ncu"):
        missing.append("ncu (--no-ncu does without)")
    return missing
