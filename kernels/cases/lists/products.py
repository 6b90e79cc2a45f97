"""Matrix products and gated linear units of this project."""

PRODUCT_COLUMNS = "workload,batch,m,n,k,block_m,block_n,block_k,num_warps,num_stages,mma,copy,tile_order,splits".split(",")


def product(workload, sizes, config, splits=1):
    batch, m, n, k = sizes
    block_m, block_n, block_k, warps, stages = config
    return dict(workload=workload, batch=batch, m=m, n=n, k=k, block_m=block_m, block_n=block_n, block_k=block_k, num_warps=warps,
                num_stages=stages, mma="mma", copy="cp_async", tile_order="m_first",
                splits=splits)


def products():
    """Matrix products, with K in one part and in several, and gated linear units."""
    rows = []
    for sizes, splits in (((1, 4096, 4096, 4096), (1,)), ((1, 512, 512, 16384), (1, 4, 16)), ((1, 128, 4096, 4096), (1, 2, 8)),
                          ((1, 1024, 1024, 8192), (1, 4)), ((16, 1024, 1024, 128), (1,)),
                          ((1, 8192, 2048, 2048), (1,)), ((8, 256, 256, 4096), (1, 4))):
        for config in ((128, 128, 64, 8, 3), (128, 64, 64, 4, 4), (64, 128, 64, 4, 3)):
            rows += [product("matmul_tiled", sizes, config, number) for number in splits]
    for sizes in ((1, 2048, 5632, 2048), (1, 128, 11008, 4096), (1, 4096, 11008, 4096), (1, 8192, 2816, 1024), (1, 512, 14336, 4096)):
        for config in ((128, 64, 64, 8, 3), (64, 64, 64, 4, 3)):
            rows.append(product("glu", sizes, config))
    return rows


WGMMA_PRODUCT_COLUMNS = ("workload,batch,m,n,k,transpose_b,block_m,block_n,block_k,num_warps,num_stages,mma,copy,persistent,store,"
                         "tile_order,splits,part").split(",")
# (transpose_b, block_m, block_n, warps, stages, persistent, store), which products/product_bench.cu has
COMPILED_WGMMA_PRODUCTS = (
    (0, 128, 128, 8, 4, 0, "direct"), (0, 128, 128, 8, 4, 1, "staged"), (1, 128, 128, 8, 4, 0, "staged"), (0, 128, 128, 4, 3, 0, "direct"),
    (0, 128, 256, 8, 3, 1, "staged"), (0, 128, 256, 8, 2, 1, "direct"), (1, 256, 128, 8, 4, 1, "staged"), (0, 256, 128, 8, 3, 0, "direct"),
    (1, 128, 192, 8, 4, 1, "staged"), (0, 64, 128, 4, 4, 0, "direct"), (0, 64, 128, 4, 2, 0, "staged"), (1, 64, 256, 4, 3, 1, "staged"))


def wgmma_product(sizes, config, splits=1):
    transpose_b, block_m, block_n, warps, stages, persistent, store = config
    row = product("matmul_tiled", sizes, (block_m, block_n, 64, warps, stages), splits)
    return dict(row, transpose_b=transpose_b, mma="wgmma", copy="tma", persistent=persistent, store=store)


def wgmma_products():
    """Products by wgmma and TMA; of each shape every second kernel is held back, the others of the next shape."""
    configs, rows = COMPILED_WGMMA_PRODUCTS, []
    shapes = ((1, 4096, 4096, 4096), (1, 8192, 2304, 1024), (1, 16384, 4608, 64), (8, 2048, 1536, 128), (1, 768, 768, 16384),
              (1, 3072, 3072, 512))
    for i, sizes in enumerate(shapes):
        turns = [(j, j, 1) for j in range(len(configs))]
        if sizes[3] == 16384:
            unstaged = [j for j in range(len(configs)) if configs[j][5:] == (0, "direct")]
            turns += [(j + more, j, splits) for j in unstaged for more, splits in enumerate((3, 7))]
        for turn, j, splits in turns:
            if sizes[2] % configs[j][2] == 0:
                part = "held_out" if (i + turn) % 2 else "calibration"
                rows.append(dict(wgmma_product(sizes, configs[j], splits), part=part))
    return rows
