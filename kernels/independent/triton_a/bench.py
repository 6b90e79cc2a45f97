"""bench.py list|check|profile|time [CASE...]: Triton's kernels of kernels.py (../README.md). `list` needs neither torch nor triton."""
import json
import math
import os
import sys

LOG2E = 1.4426950408889634
SHARED_LIMIT = 220 * 1024


def pow2(n):
    """The power of two from n up."""
    return 1 << (n - 1).bit_length()


CASES = []


def add(kernel, **c):
    c["kernel"] = kernel
    CASES.append(c)


def build_cases():
    """In the order in which they are listed and launched."""
    # block pointers: batch heads sq skv d causal bm bn warps stages
    for b, h, sq, skv, d, causal, bm, bn, w, s in [
        (4, 16, 2048, 2048, 64, 0, 128, 64, 4, 3),
        (2, 32, 4096, 4096, 64, 1, 128, 128, 8, 2),
        (4, 32, 1024, 1024, 128, 0, 64, 64, 4, 3),
        (2, 16, 4096, 4096, 128, 1, 128, 64, 8, 3),
        (1, 16, 8192, 8192, 128, 1, 128, 128, 8, 2),
        (8, 16, 1024, 2048, 64, 0, 64, 32, 4, 4),
        (1, 24, 4096, 4096, 128, 0, 256, 64, 8, 2),
        (2, 16, 2048, 2048, 64, 0, 32, 32, 2, 3),
        (4, 12, 2048, 2048, 64, 1, 64, 64, 2, 2),
        (2, 8, 2048, 2048, 128, 0, 16, 32, 1, 2),
    ]:
        add("blockptr", batch=b, heads=h, kv_heads=h, sq=sq, skv=skv, d=d, causal=causal,
            bm=bm, bn=bn, w=w, s=s, dtype="fp16", layout="bhsd")

    # strides, ragged lengths
    for b, h, hk, sq, skv, d, causal, bm, bn, w, s, layout in [
        (6, 16, 16, 1500, 1500, 64, 0, 64, 64, 4, 2, "bhsd"),
        (2, 20, 20, 1777, 1777, 128, 0, 128, 32, 4, 3, "bshd"),
        (4, 16, 16, 1500, 3000, 64, 0, 128, 64, 4, 4, "bhsd"),
        (2, 32, 32, 3100, 3100, 64, 1, 64, 64, 4, 1, "bshd"),
        (6, 16, 16, 777, 777, 128, 1, 64, 32, 4, 2, "bhsd"),
        (16, 12, 12, 1020, 1020, 64, 0, 32, 32, 2, 4, "bshd"),
        (2, 16, 16, 2500, 2500, 128, 1, 128, 64, 8, 2, "bshd"),
        (1, 8, 8, 5000, 5000, 128, 0, 128, 128, 8, 1, "bhsd"),
    ]:
        add("strided", batch=b, heads=h, kv_heads=hk, sq=sq, skv=skv, d=d, causal=causal,
            bm=bm, bn=bn, w=w, s=s, dtype="fp16", layout=layout)

    # two-stage causal with GQA
    for b, h, hk, n, d, bm, bn, w, s in [
        (2, 32, 8, 2048, 128, 128, 64, 8, 3),
        (1, 32, 8, 4096, 128, 128, 128, 8, 2),
        (4, 32, 4, 2048, 64, 128, 64, 4, 3),
        (2, 40, 8, 2048, 128, 64, 64, 4, 2),
        (4, 24, 8, 2048, 64, 64, 32, 4, 3),
        (1, 64, 8, 4096, 64, 256, 64, 8, 2),
        (2, 16, 2, 2048, 64, 64, 32, 2, 3),
        (1, 28, 4, 2048, 128, 32, 32, 2, 2),
    ]:
        add("two_stage", batch=b, heads=h, kv_heads=hk, sq=n, skv=n, d=d, causal=1,
            bm=bm, bn=bn, w=w, s=s, dtype="fp16", layout="bhsd")

    # bf16, scale folded into q, eager or lazy rescaling
    for b, h, n, d, causal, bm, bn, w, s, lazy in [
        (4, 16, 2048, 64, 0, 128, 64, 4, 3, 0),
        (2, 32, 2048, 128, 1, 128, 64, 8, 2, 0),
        (1, 32, 4096, 128, 0, 128, 128, 8, 2, 0),
        (4, 16, 2048, 128, 0, 64, 64, 4, 3, 1),
        (2, 16, 4096, 64, 1, 128, 64, 8, 3, 1),
    ]:
        add("prescaled", batch=b, heads=h, kv_heads=h, sq=n, skv=n, d=d, causal=causal,
            bm=bm, bn=bn, w=w, s=s, dtype="bf16", layout="bhsd", lazy=lazy)

    # split-KV decoding
    for b, h, hk, n, d, splits, bn, w, s in [
        (16, 32, 8, 8192, 128, 8, 64, 4, 3),
        (1, 64, 8, 65536, 128, 32, 128, 4, 2),
        (4, 32, 4, 65536, 64, 16, 64, 2, 4),
        (8, 32, 32, 4096, 128, 4, 32, 4, 3),
    ]:
        add("decode", batch=b, heads=h, kv_heads=hk, sq=1, skv=n, d=d, causal=0,
            bm=16, bn=bn, w=w, s=s, dtype="fp16", layout="bhsd", splits=splits)

    # softmax of rows
    for b, h, sq, skv, w in [
        (1, 16, 4096, 4096, 8),
        (2, 16, 2048, 2048, 4),
        (4, 12, 1024, 1024, 2),
        (1, 8, 4096, 3072, 4),
    ]:
        add("softmax", batch=b, heads=h, sq=sq, skv=skv, w=w, dtype="fp16")

    # matmul
    for m, n, k, bm, bn, bk, w, s in [
        (4096, 4096, 4096, 128, 128, 64, 4, 3),
        (4096, 4096, 4096, 128, 256, 64, 8, 3),
        (8192, 4096, 1024, 64, 128, 64, 4, 4),
        (4096, 8192, 2048, 128, 128, 32, 8, 4),
    ]:
        add("matmul", m=m, n=n, k=k, bm=bm, bn=bn, bk=bk, w=w, s=s, dtype="fp16")

    # paged decoding
    for b, h, hk, n, d, page, splits, bn, w, s in [
        (64, 32, 8, 2048, 128, 16, 1, 64, 4, 3),
        (32, 32, 8, 4096, 128, 64, 1, 64, 4, 3),
        (16, 64, 8, 8192, 128, 128, 4, 128, 4, 2),
        (128, 16, 16, 1024, 64, 32, 1, 32, 2, 4),
        (48, 32, 4, 8192, 64, 16, 1, 16, 1, 3),
    ]:
        add("paged", batch=b, heads=h, kv_heads=hk, sq=1, skv=n, d=d, page=page,
            bm=16, bn=bn, w=w, s=s, dtype="fp16", splits=splits)

    for i, c in enumerate(CASES):
        assert shared_bytes(c) <= SHARED_LIMIT, (i, c)


def shared_bytes(c):
    """Of the tiles that Triton buffers."""
    if c["kernel"] == "softmax":
        return 0
    if c["kernel"] == "matmul":
        return 2 * c["s"] * c["bk"] * (c["bm"] + c["bn"])
    return 2 * c["d"] * (c["bm"] + 2 * c["s"] * c["bn"])


def wgmma(c):
    """Whether Triton takes wgmma for its products."""
    return c["bm"] >= 64 and c["w"] >= 4


WORKLOAD = {"blockptr": "flash2_fwd", "strided": "flash2_fwd", "two_stage": "flash2_fwd", "prescaled": "flash2_fwd",
            "decode": "flash_decode", "softmax": "softmax_safe", "matmul": "matmul_tiled", "paged": "paged_decode"}


def describe(i, c):
    """The parameters of case i; `note`: what they cannot say."""
    kn = c["kernel"]
    d = {"case": i, "workload": WORKLOAD[kn]}
    note = {"kernel": kn}
    if kn == "softmax":
        d.update(batch=c["batch"], heads=c["heads"], seqlen_q=c["sq"], seqlen_kv=c["skv"], dtype=c["dtype"],
                 block_m=1, num_warps=c["w"], launches=1)
        note.update(rows=c["batch"] * c["heads"] * c["sq"], cols=c["skv"], io="fp16 in, fp16 out, row kept in registers")
        d["note"] = note
        return d
    if kn == "matmul":
        d.update(m=c["m"], n=c["n"], k=c["k"], dtype=c["dtype"], block_m=c["bm"], block_n=c["bn"], block_k=c["bk"])
        note.update(group_m=8, B="row-major K x N")
    else:
        d.update(batch=c["batch"], heads=c["heads"], kv_heads=c["kv_heads"], seqlen_q=c["sq"], seqlen_kv=c["skv"],
                 head_dim=c["d"], dtype=c["dtype"], block_m=c["bm"], block_n=c["bn"])
        if "causal" in c and kn != "decode":
            d["causal"] = bool(c["causal"])
    d["num_warps"] = c["w"]
    d["mma"] = "wgmma" if wgmma(c) else "mma"
    d["num_stages"] = c["s"] if wgmma(c) else c["s"] - 1
    d["copy"] = "cp_async" if c["s"] > 1 else "ldg"
    note["triton_num_stages"] = c["s"]
    launches = 1
    if WORKLOAD[kn] == "flash2_fwd":
        d["schedule"] = "stages"
        d["tile_order"] = "head_first" if kn == "two_stage" else "m_first"
        d["tile_reverse"] = kn == "two_stage"
        d["layout"] = c["layout"]
        d["persistent"] = False
        if kn == "prescaled":
            note["rescale"] = "lazy" if c["lazy"] else "eager"
    if kn == "decode":
        d["layout"] = c["layout"]
        d["splits"] = c["splits"]
        launches = 2
    if kn == "paged":
        d["page_size"] = c["page"]
        d["splits"] = c["splits"]
        d["page_layout"] = "scattered"
        note["cache"] = "[page][kv_head][token][dim], pages in random order"
        launches = 2 if c["splits"] > 1 else 1
    d["launches"] = launches
    d["note"] = note
    return d


def small(c):
    """A small problem for the same instance."""
    s = dict(c)
    kn = c["kernel"]
    if kn == "softmax":
        s.update(batch=1, heads=2, sq=40)
    elif kn == "matmul":
        s.update(m=3 * c["bm"], n=2 * c["bn"], k=4 * c["bk"])
    else:
        group = c["heads"] // c["kv_heads"]
        s.update(batch=2, heads=2 * group, kv_heads=2)
        if kn in ("strided", "prescaled"):  # n_heads is a run-time argument: same divisibility by 16 as the case
            n = c["heads"] if c["heads"] <= 20 else 16
            s.update(heads=n, kv_heads=n)
        t = max(c["bm"], c["bn"])
        if kn == "strided":
            s["sq"] = 2 * t + 37
            s["skv"] = s["sq"] if c["causal"] else 3 * t + 21
        elif kn in ("decode", "paged"):
            s["skv"] = c["splits"] * 16 * max(c["bn"], c.get("page", 0))
        else:
            s["sq"] = 3 * t
            s["skv"] = 3 * t if c["causal"] else 5 * t
            if kn == "two_stage":
                s["skv"] = s["sq"]
    return s


class Case:
    """A case with its tensors; run() launches its kernels once."""

    def __init__(self, c):
        import torch
        import kernels
        self.torch, self.K, self.c = torch, kernels, c
        self.dtype = torch.bfloat16 if c["dtype"] == "bf16" else torch.float16
        torch.manual_seed(1234)
        getattr(self, "make_" + c["kernel"])()

    def randn(self, *shape):
        return self.torch.randn(shape, device="cuda", dtype=self.dtype)

    def empty(self, *shape, dtype=None):
        return self.torch.empty(shape, device="cuda", dtype=dtype or self.dtype)

    def make_qkv(self):
        c = self.c
        if c["layout"] == "bhsd":
            self.q = self.randn(c["batch"], c["heads"], c["sq"], c["d"])
            self.k = self.randn(c["batch"], c["kv_heads"], c["skv"], c["d"])
            self.v = self.randn(c["batch"], c["kv_heads"], c["skv"], c["d"])
            self.o = self.empty(c["batch"], c["heads"], c["sq"], c["d"])
        else:  # stored [batch][seq][heads][dim], seen as bhsd
            self.q = self.randn(c["batch"], c["sq"], c["heads"], c["d"]).transpose(1, 2)
            self.k = self.randn(c["batch"], c["skv"], c["kv_heads"], c["d"]).transpose(1, 2)
            self.v = self.randn(c["batch"], c["skv"], c["kv_heads"], c["d"]).transpose(1, 2)
            self.o = self.empty(c["batch"], c["sq"], c["heads"], c["d"]).transpose(1, 2)
        self.lse = self.empty(c["batch"], c["heads"], c["sq"], dtype=self.torch.float32)
        self.scale = 1.0 / math.sqrt(c["d"])

    def make_blockptr(self):
        c = self.c
        self.make_qkv()
        grid = (c["sq"] // c["bm"], c["batch"] * c["heads"])
        self.run = lambda: self.K.fwd_blockptr[grid](
            self.q, self.k, self.v, self.o, self.lse, self.scale * LOG2E, c["sq"], c["skv"],
            HEAD_DIM=c["d"], CAUSAL=bool(c["causal"]), BLOCK_M=c["bm"], BLOCK_N=c["bn"],
            num_warps=c["w"], num_stages=c["s"])

    def make_strided(self):
        c = self.c
        self.make_qkv()
        grid = ((c["sq"] + c["bm"] - 1) // c["bm"], c["heads"], c["batch"])
        st = []
        for t in (self.q, self.k, self.v, self.o):
            st += [t.stride(0), t.stride(1), t.stride(2)]
        self.run = lambda: self.K.fwd_strided[grid](
            self.q, self.k, self.v, self.o, self.lse, self.scale, *st, c["heads"], c["sq"], c["skv"],
            HEAD_DIM=c["d"], CAUSAL=bool(c["causal"]), BLOCK_M=c["bm"], BLOCK_N=c["bn"],
            num_warps=c["w"], num_stages=c["s"])

    def make_two_stage(self):
        c = self.c
        self.make_qkv()
        grid = (c["batch"] * c["heads"], c["sq"] // c["bm"])
        self.run = lambda: self.K.fwd_two_stage[grid](
            self.q, self.k, self.v, self.o, self.lse, self.scale * LOG2E, c["sq"],
            HEADS=c["heads"], KV_HEADS=c["kv_heads"], HEAD_DIM=c["d"], BLOCK_M=c["bm"], BLOCK_N=c["bn"],
            num_warps=c["w"], num_stages=c["s"])

    def make_prescaled(self):
        c = self.c
        self.make_qkv()
        grid = (c["sq"] // c["bm"], c["heads"], c["batch"])
        self.run = lambda: self.K.fwd_prescaled[grid](
            self.q, self.k, self.v, self.o, self.lse, self.scale * LOG2E, c["sq"], c["skv"], c["heads"],
            HEAD_DIM=c["d"], CAUSAL=bool(c["causal"]), LAZY=bool(c["lazy"]), BLOCK_M=c["bm"], BLOCK_N=c["bn"],
            num_warps=c["w"], num_stages=c["s"])

    def make_parts(self):
        c = self.c
        rows = c["batch"] * c["heads"]
        self.po = self.empty(rows, c["splits"], c["d"], dtype=self.torch.float32)
        self.pl = self.empty(rows, c["splits"], dtype=self.torch.float32)

    def combine(self):
        c = self.c
        self.K.decode_combine[(c["batch"] * c["heads"],)](
            self.po, self.pl, self.o, self.lse, HEAD_DIM=c["d"], SPLITS=c["splits"], SPLITS_POW2=pow2(c["splits"]),
            num_warps=4)

    def make_decode(self):
        c = self.c
        self.make_qkv()
        self.make_parts()
        per = c["skv"] // c["splits"]
        grid = (c["splits"], c["kv_heads"], c["batch"])

        def run():
            self.K.decode_split[grid](
                self.q, self.k, self.v, self.po, self.pl, self.scale * LOG2E, c["skv"], per,
                HEADS=c["heads"], KV_HEADS=c["kv_heads"], HEAD_DIM=c["d"], BLOCK_H=c["bm"], BLOCK_N=c["bn"],
                SPLITS=c["splits"], num_warps=c["w"], num_stages=c["s"])
            self.combine()
        self.run = run

    def make_softmax(self):
        c = self.c
        rows = c["batch"] * c["heads"] * c["sq"]
        self.x = self.randn(rows, c["skv"])
        self.y = self.empty(rows, c["skv"])
        self.run = lambda: self.K.softmax_row[(rows,)](
            self.x, self.y, c["skv"], c["skv"], c["skv"], BLOCK=pow2(c["skv"]), num_warps=c["w"])

    def make_matmul(self):
        c = self.c
        self.a = self.randn(c["m"], c["k"])
        self.b = self.randn(c["k"], c["n"])
        self.cc = self.empty(c["m"], c["n"])
        grid = ((c["m"] // c["bm"]) * (c["n"] // c["bn"]),)
        self.run = lambda: self.K.matmul[grid](
            self.a, self.b, self.cc, c["m"], c["n"], c["k"], c["k"], c["n"], c["n"],
            BLOCK_M=c["bm"], BLOCK_N=c["bn"], BLOCK_K=c["bk"], GROUP_M=8, num_warps=c["w"], num_stages=c["s"])

    def make_paged(self):
        c, torch = self.c, self.torch
        per_seq = c["skv"] // c["page"]
        pages = c["batch"] * per_seq
        self.q = self.randn(c["batch"], c["heads"], 1, c["d"])
        self.kc = self.randn(pages, c["kv_heads"], c["page"], c["d"])
        self.vc = self.randn(pages, c["kv_heads"], c["page"], c["d"])
        self.table = torch.randperm(pages, device="cuda").to(torch.int32).reshape(c["batch"], per_seq)
        self.lens = torch.full((c["batch"],), c["skv"], device="cuda", dtype=torch.int32)
        self.o = self.empty(c["batch"], c["heads"], 1, c["d"])
        self.lse = self.empty(c["batch"], c["heads"], 1, dtype=torch.float32)
        self.scale = 1.0 / math.sqrt(c["d"])
        self.make_parts()
        per = c["skv"] // c["splits"]
        grid = (c["splits"], c["kv_heads"], c["batch"])

        def run():
            self.K.paged_decode[grid](
                self.q, self.kc, self.vc, self.table, self.lens, self.o, self.lse, self.po, self.pl,
                self.scale * LOG2E, per_seq, per,
                HEADS=c["heads"], KV_HEADS=c["kv_heads"], HEAD_DIM=c["d"], PAGE=c["page"],
                BLOCK_H=c["bm"], BLOCK_N=c["bn"], SPLITS=c["splits"], num_warps=c["w"], num_stages=c["s"])
            if c["splits"] > 1:
                self.combine()
        self.run = run

    def reference(self):
        """[(name, output, what it should be in fp64)]"""
        c, torch = self.c, self.torch
        kn = c["kernel"]
        if kn == "softmax":
            return [("y", self.y, torch.softmax(self.x.double(), dim=-1))]
        if kn == "matmul":
            return [("c", self.cc, self.a.double() @ self.b.double())]
        if kn == "paged":
            kk = self.kc[self.table.long()]          # [b][pages][kvh][page][d]
            vv = self.vc[self.table.long()]
            shape = (c["batch"], c["kv_heads"], c["skv"], c["d"])
            k = kk.permute(0, 2, 1, 3, 4).reshape(shape)
            v = vv.permute(0, 2, 1, 3, 4).reshape(shape)
        else:
            k, v = self.k, self.v
        group = c["heads"] // c["kv_heads"]
        k = k.double().repeat_interleave(group, dim=1)
        v = v.double().repeat_interleave(group, dim=1)
        s = self.q.double() @ k.transpose(-1, -2) * self.scale
        if c.get("causal"):
            i = torch.arange(c["sq"], device="cuda")[:, None]
            j = torch.arange(c["skv"], device="cuda")[None, :]
            s = s.masked_fill(j > i, float("-inf"))
        lse = torch.logsumexp(s, dim=-1)
        o = torch.exp(s - lse[..., None]) @ v
        return [("o", self.o, o), ("lse", self.lse, lse)]

    def poison(self):
        """Outputs become NaN, so that what is not written shows."""
        for name in ("o", "lse", "y", "cc", "po", "pl"):
            if hasattr(self, name):
                getattr(self, name).fill_(float("nan"))


def label(c):
    keys = [k for k in ("d", "dtype", "causal", "layout", "bm", "bn", "bk", "w", "s", "splits", "page", "lazy") if k in c]
    group = ["group=%d" % (c["heads"] // c["kv_heads"])] if "kv_heads" in c else []
    return " ".join([c["kernel"]] + ["%s=%s" % (k, c[k]) for k in keys] + group)


def say_failed(i, e):
    print("case %d failed: %s: %s" % (i, type(e).__name__, str(e).strip().replace("\n", " | ")[:600]),
          file=sys.stderr, flush=True)


def do_list(which):
    for i in which:
        print(json.dumps(describe(i, CASES[i])))
    return 0


def do_check(which):
    import torch
    bad = 0
    for i in which:
        c = small(CASES[i])
        try:
            case = Case(c)
            case.poison()
            case.run()
            torch.cuda.synchronize()
            for name, got, want in case.reference():
                err = ((got.double() - want).abs() / (1.0 + want.abs())).max().item()
                tol = 3e-2 if c["dtype"] == "bf16" else (3e-3 if name == "lse" else 6e-3)
                ok = err <= tol  # false for NaN
                bad += not ok
                print("case %d %s %s max_err %.3e %s" % (i, label(c), name, err, "ok" if ok else "FAIL"), flush=True)
        except Exception as e:
            bad += 1
            say_failed(i, e)
            print("case %d %s max_err nan FAIL" % (i, label(c)), flush=True)
    return 1 if bad else 0


def do_profile(which):
    import torch
    rt = torch.cuda.cudart()
    bad = 0
    for i in which:
        try:
            case = Case(CASES[i])
            case.run()                      # compiles, loads and warms up
            torch.cuda.synchronize()
            rt.cudaProfilerStart()
            try:
                case.run()
                torch.cuda.synchronize()
            finally:
                rt.cudaProfilerStop()
        except Exception as e:
            bad += 1
            say_failed(i, e)
        case = None
    return 1 if bad else 0


def do_time(which):
    import torch
    junk = torch.empty(64 * 1024 * 1024, device="cuda", dtype=torch.float32)  # 256 MB
    bad = 0
    for i in which:
        try:
            case = Case(CASES[i])
            for _ in range(3):
                case.run()
            torch.cuda.synchronize()
            us = []
            for r in range(15):
                a = torch.cuda.Event(enable_timing=True)
                b = torch.cuda.Event(enable_timing=True)
                torch.cuda._sleep(1000000)  # lets the host queue everything before the GPU gets there
                junk.fill_(float(r))
                a.record()
                case.run()
                b.record()
                torch.cuda.synchronize()
                us.append(a.elapsed_time(b) * 1000.0)
            us.sort()
            print(json.dumps({"case": i, "us": round(us[7], 3)}), flush=True)
        except Exception as e:
            bad += 1
            say_failed(i, e)
        case = None
    return 1 if bad else 0


def main():
    modes = {"list": do_list, "check": do_check, "profile": do_profile, "time": do_time}
    if len(sys.argv) < 2 or sys.argv[1] not in modes:
        print(__doc__, file=sys.stderr)
        return 2
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    build_cases()
    which = [int(a) for a in sys.argv[2:]] or list(range(len(CASES)))
    return modes[sys.argv[1]](which)


if __name__ == "__main__":
    sys.exit(main())
