"""The fifth, sixth and seventh set that nobody has seen: kernels of others at shapes, head counts and blocks that no other file has.
Chosen before anything was measured (measurements/HELDOUT.md); the cases of this project's own kernels are in chosen_own.py."""
import typing

from lists.foreign_kernels import BACKWARD, foreign_case, foreign_paged, foreign_product, triton_product, triton_softmax


class Chosen(typing.NamedTuple):
    """Shapes are (batch, heads, kv_heads, seqlen, head_dim, causal), or end before `causal` for both; each is measured with each config of
    its kind."""
    shapes: tuple  # of Triton's attention and, in both ways, of the library's
    configs: tuple
    flex_shapes: tuple
    flex_configs: tuple
    windows: tuple  # (shape, config, window) in flex
    library_shapes: tuple  # more of them
    backward_shapes: tuple
    products: tuple
    transposed_products: tuple  # of bf16
    requests: tuple  # (lengths, heads, kv_heads, head_dim, splits)
    pages: tuple  # (config, page_size, page_layout)
    triton_products: tuple
    product_configs: tuple
    softmaxes: tuple  # (rows, columns, each number of warps)


CHOSEN = {
    5: Chosen(
        shapes=((2, 26, 26, 3328, 128, 0), (1, 28, 7, 4864, 128, 1), (6, 9, 9, 1664, 64, 0), (1, 10, 2, 11264, 64, 1),
                (1, 3, 3, 24576, 128, 0)),
        configs=((64, 64, 4, 3), (64, 128, 4, 2), (128, 64, 4, 2), (128, 64, 8, 3), (128, 128, 8, 2), (128, 32, 4, 3), (64, 32, 4, 2),
                 (256, 64, 8, 3)),
        flex_shapes=((2, 26, 26, 3328, 128, 0), (1, 28, 7, 4864, 128, 1)),
        flex_configs=((64, 64, 4, 3), (128, 64, 4, 2), (128, 64, 8, 3), (128, 128, 8, 2), (64, 128, 4, 2)),
        windows=tuple(((2, 15, 5, 4352, 64, 1), config, 900) for config in ((64, 64, 4, 3), (128, 128, 8, 2))),
        library_shapes=((3, 7, 7, 2176, 256),),
        backward_shapes=((2, 26, 26, 1664, 128, 0), (6, 9, 9, 2304, 64, 0)),
        products=((1, 3584, 3584, 7168), (1, 6656, 1536, 3072), (1, 1536, 12800, 2048), (1, 10752, 2688, 2688), (12, 1664, 1664, 128)),
        transposed_products=((1, 3584, 3584, 7168), (1, 1536, 12800, 2048)),
        requests=(("3300x12", 40, 8, 128, 4), ("14000:700x11:1900x4", 16, 4, 128, 6)),
        pages=(((64, 4, 3), 16, "scattered"), ((64, 4, 2), 64, "contiguous"), ((128, 4, 2), 32, "scattered")),
        triton_products=((1, 3072, 3072, 3072), (1, 6144, 1024, 2048), (10, 768, 768, 768)),
        product_configs=((128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3), (64, 128, 64, 4, 3),
                         (128, 128, 32, 4, 4)),
        softmaxes=((9000, 2048, (4, 8)), (25000, 768, (4,)), (3000, 7000, (4, 8)), (320, 20000, (4, 8)))),
    6: Chosen(
        shapes=((2, 19, 19, 3968, 128, 1), (1, 44, 11, 2944, 128, 0), (7, 6, 6, 2176, 64, 1), (1, 12, 4, 9728, 64, 0)),
        configs=((64, 64, 4, 3), (64, 128, 8, 2), (128, 64, 4, 3), (128, 64, 8, 2), (128, 128, 8, 2), (64, 32, 4, 4)),
        flex_shapes=((2, 19, 19, 3968, 128, 1), (7, 6, 6, 2176, 64, 0)),
        flex_configs=((64, 64, 4, 2), (128, 64, 8, 2), (128, 128, 8, 2), (64, 32, 4, 3)),
        windows=(),
        library_shapes=((2, 5, 5, 3200, 256), (40, 24, 8, 448, 128)),
        backward_shapes=((2, 19, 19, 1984, 128, 1), (7, 6, 6, 2176, 64, 1)),
        products=((1, 3840, 3840, 3840), (1, 1920, 7680, 5120), (1, 12800, 1280, 2560), (16, 1152, 1152, 64)),
        transposed_products=((1, 3840, 3840, 3840),),
        requests=(("5200x9", 48, 8, 128, 3), ("21000:450x14:3100x5", 32, 8, 128, 8)),
        pages=(((64, 4, 3), 32, "scattered"), ((128, 4, 2), 16, "contiguous")),
        triton_products=((1, 3584, 2560, 2560), (7, 1280, 1280, 640)),
        product_configs=((128, 128, 64, 8, 3), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3), (64, 128, 32, 4, 4)),
        softmaxes=((17000, 1536, (4, 8)), (5000, 4096, (4, 8)), (700, 14000, (4, 8)))),
    7: Chosen(
        shapes=((3, 13, 13, 3328, 128, 0), (1, 42, 14, 4736, 128, 1), (5, 18, 6, 1664, 64, 0), (1, 9, 9, 11264, 64, 1)),
        configs=((64, 64, 4, 2), (64, 64, 8, 3), (128, 32, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (256, 64, 8, 2)),
        flex_shapes=((3, 13, 13, 3328, 128, 0), (1, 9, 9, 11264, 64, 1)),
        flex_configs=((64, 128, 4, 2), (128, 64, 4, 2), (128, 64, 8, 3), (128, 32, 8, 2)),
        windows=(),
        library_shapes=((1, 7, 7, 4608, 256), (24, 20, 20, 576, 96)),
        backward_shapes=((3, 13, 13, 1664, 128, 1), (5, 18, 18, 1664, 64, 1)),
        products=((1, 5632, 5632, 2816), (1, 1536, 9216, 4608), (1, 11264, 1408, 1408), (12, 1792, 128, 1792)),
        transposed_products=((1, 5632, 5632, 2816),),
        requests=(("2700x20", 40, 8, 128, 2), ("35000:900x10:6100x3", 28, 4, 128, 10)),
        pages=(((64, 4, 2), 16, "scattered"), ((32, 4, 4), 32, "contiguous")),
        triton_products=((1, 4608, 2304, 3072), (5, 1536, 1024, 768)),
        product_configs=((128, 256, 64, 8, 3), (128, 128, 32, 4, 4), (64, 128, 64, 4, 3), (128, 64, 32, 4, 4)),
        softmaxes=((26000, 1024, (4, 8)), (3500, 7000, (4, 8)), (400, 25000, (4, 8)))),
}


def triton(chosen):
    return [foreign_case("triton", shape, config) for shape in chosen.shapes for config in chosen.configs]


def flex(chosen):
    rows = [foreign_case("flex", shape, config) for shape in chosen.flex_shapes for config in chosen.flex_configs]
    return rows + [foreign_case("flex", shape, config, window=window) for shape, config, window in chosen.windows]


def library(chosen):
    shapes = [*(shape[:5] for shape in chosen.shapes), *chosen.library_shapes]
    rows = [foreign_case(source, (*shape, causal)) for shape in shapes for causal in (0, 1) for source in ("sdpa_flash", "sdpa_cudnn")]
    rows += [foreign_case("sdpa_flash", shape, **BACKWARD) for shape in chosen.backward_shapes]
    rows += [foreign_product(*sizes) for sizes in chosen.products]
    return rows + [foreign_product(*sizes, dtype="bf16", transpose_b=1) for sizes in chosen.transposed_products]


def decode(chosen):
    return [foreign_paged(lengths, heads, kv_heads, head_dim, config, page_size, page_layout, splits)
            for lengths, heads, kv_heads, head_dim, splits in chosen.requests for config, page_size, page_layout in chosen.pages]


def rows(chosen):
    """Products and softmaxes."""
    found = [triton_product(sizes, config) for sizes in chosen.triton_products for config in chosen.product_configs]
    return found + [triton_softmax(num_rows, columns, num_warps) for num_rows, columns, warps in chosen.softmaxes for num_warps in warps]


FOREIGN = {"triton": triton, "flex": flex, "library": library, "decode": decode, "rows": rows}
