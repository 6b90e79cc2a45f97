"""Split-KV decoding over a paged KV cache in Triton, after vLLM's and FlashInfer's: a program a work item (a sequence and a part of its keys, from a list that the host
makes) and KV head; a second kernel combines the parts.  The cache is [page][token][kv_head][head_dim]."""
import math

import torch
import triton
import triton.language as tl
from problems import lengths_of, number


@triton.jit
def paged_split(q_ptr, k_ptr, v_ptr, partial_o_ptr, partial_lse_ptr, lengths_ptr, first_page_ptr, pages_ptr, item_sequence_ptr, item_part_ptr, scale_log2, heads, kv_heads,
                tokens_per_part, GROUP: tl.constexpr, PAGE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr):
    kv_head = tl.program_id(0)
    item = tl.program_id(1)
    sequence = tl.load(item_sequence_ptr + item)
    begin = tl.load(item_part_ptr + item) * tokens_per_part
    end = tl.minimum(begin + tokens_per_part, tl.load(lengths_ptr + sequence))
    table = pages_ptr + tl.load(first_page_ptr + sequence)
    rows, dims, columns = tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM), tl.arange(0, BLOCK_N)
    head = kv_head * GROUP + rows
    q = tl.load(q_ptr + (sequence * heads + head)[:, None] * HEAD_DIM + dims[None, :], mask=(rows < GROUP)[:, None], other=0.0)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    row_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    row_sum = tl.zeros([BLOCK_M], tl.float32)
    for start in range(begin, end, BLOCK_N):
        token = start + columns
        is_there = token < end
        page = tl.load(table + token // PAGE, mask=is_there, other=0)
        row = ((page * PAGE + token % PAGE).to(tl.int64) * kv_heads + kv_head) * HEAD_DIM
        k = tl.load(k_ptr + row[None, :] + dims[:, None], mask=is_there[None, :], other=0.0)
        s = tl.where(is_there[None, :], tl.dot(q, k) * scale_log2, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(s, 1))
        p = tl.math.exp2(s - new_max[:, None])
        correction = tl.math.exp2(row_max - new_max)
        row_sum = row_sum * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        v = tl.load(v_ptr + row[:, None] + dims[None, :], mask=is_there[:, None], other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc)
        row_max = new_max
    to = (item * kv_heads + kv_head) * GROUP + rows
    tl.store(partial_o_ptr + to[:, None] * HEAD_DIM + dims[None, :], acc / row_sum[:, None], mask=(rows < GROUP)[:, None])
    tl.store(partial_lse_ptr + to, row_max + tl.math.log2(row_sum), mask=rows < GROUP)


@triton.jit
def paged_combine(partial_o_ptr, partial_lse_ptr, o_ptr, lse_ptr, first_item_ptr, heads, HEAD_DIM: tl.constexpr):
    head = tl.program_id(0)
    sequence = tl.program_id(1)
    dims = tl.arange(0, HEAD_DIM)
    first, end = tl.load(first_item_ptr + sequence), tl.load(first_item_ptr + sequence + 1)
    top = float("-inf")
    for item in range(first, end):
        top = tl.maximum(top, tl.load(partial_lse_ptr + item * heads + head))
    total = 0.0
    acc = tl.zeros([HEAD_DIM], tl.float32)
    for item in range(first, end):
        weight = tl.math.exp2(tl.load(partial_lse_ptr + item * heads + head) - top)
        total += weight
        acc += weight * tl.load(partial_o_ptr + (item * heads + head) * HEAD_DIM + dims)
    to = sequence * heads + head
    tl.store(o_ptr + to * HEAD_DIM + dims, (acc / total).to(tl.float16))
    tl.store(lse_ptr + to, (top + tl.math.log2(total)) * 0.6931471805599453)


def on_gpu(values):
    return torch.tensor(values, device="cuda", dtype=torch.int32)


class Pages:
    """Block tables of the sequences, one after another, and a cache that holds their keys or values."""

    def __init__(self, lengths, page_size, scattered):
        self.lengths, self.page_size = lengths, page_size
        counts = [-(-length // page_size) for length in lengths]
        self.first = [sum(counts[:i]) for i in range(len(counts) + 1)]
        self.num_pages = sum(counts)
        self.table = torch.randperm(self.num_pages) if scattered else torch.arange(self.num_pages)

    def cache_of(self, x):
        """x: [batch][kv_heads][tokens][head_dim], the first tokens of each."""
        cache = torch.full((self.num_pages, self.page_size, x.shape[1], x.shape[3]), float("nan"), device="cuda", dtype=x.dtype)
        slots = cache.view(-1, x.shape[1], x.shape[3])
        for i, length in enumerate(self.lengths):
            token = torch.arange(length)
            slot = self.table[self.first[i] + token // self.page_size] * self.page_size + token % self.page_size
            slots[slot.cuda()] = x[i, :, :length].transpose(0, 1)
        return cache


def work_items(lengths, block_n, splits):
    """Parts are as long for every sequence, so that the longest has `splits`: (tokens of a part, sequence of each item, part of each item, first item of each sequence)."""
    tokens = -(-(-(-max(lengths) // block_n)) // splits) * block_n
    parts = [-(-length // tokens) for length in lengths]
    sequence = [i for i, count in enumerate(parts) for _ in range(count)]
    return tokens, sequence, [part for count in parts for part in range(count)], [sum(parts[:i]) for i in range(len(parts) + 1)]


def paged_call(case, q, k, v):
    lengths, block_n, head_dim = lengths_of(case), number(case, "block_n"), q.shape[3]
    heads, kv_heads = q.shape[1], k.shape[1]
    pages = Pages(lengths, number(case, "page_size"), case["page_layout"] == "scattered")
    k_cache, v_cache = pages.cache_of(k), pages.cache_of(v)
    tokens, sequence, part, first_item = work_items(lengths, block_n, number(case, "splits"))
    tables = [on_gpu(x) for x in (lengths, pages.first, pages.table.tolist(), sequence, part)]
    first_item = on_gpu(first_item)
    partial_o = torch.empty(len(sequence), heads, head_dim, device="cuda", dtype=torch.float32)
    partial_lse = torch.empty(len(sequence), heads, device="cuda", dtype=torch.float32)
    o, lse = torch.full_like(q, float("nan")), torch.empty(q.shape[:2], device="cuda", dtype=torch.float32)

    def call():
        call.compiled = paged_split[(kv_heads, len(sequence))](
            q, k_cache, v_cache, partial_o, partial_lse, *tables, 1.4426950408889634 / math.sqrt(head_dim), heads, kv_heads, tokens, GROUP=heads // kv_heads,
            PAGE=number(case, "page_size"), BLOCK_M=number(case, "block_m"), BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=number(case, "num_warps"), num_stages=number(case, "num_stages"))
        paged_combine[(heads, len(lengths))](partial_o, partial_lse, o, lse, first_item, heads, HEAD_DIM=head_dim, num_warps=4)
        return o
    return call
