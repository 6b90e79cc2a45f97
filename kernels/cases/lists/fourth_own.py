"""The fourth set that nobody has seen: this project's own kernels, at blocks and shapes that no other file has."""
from lists.own_kernels import case, decode, pingpong, softmax_case, unfused, wgmma


def own():
    rows = []
    for shape in ((3, 18, 18, 2560, 128, 1), (1, 20, 10, 5760, 128, 0), (4, 14, 14, 1920, 64, 1), (1, 6, 2, 15360, 64, 0),
                  (11, 8, 8, 960, 128, 0)):
        for config in ((64, 80, 4, 2, "stages"), (128, 80, 8, 2, "stages"), (128, 160, 8, 1, "interleaved"), (64, 160, 4, 1, "stages"),
                       (128, 48, 8, 3, "stages"), (64, 64, 4, 3, "stages")):
            if config[1] * shape[4] // 8 % (32 * config[2]) == 0:  # each thread copies as much of a tile
                rows.append(case(shape, config))
    for shape in ((3, 18, 18, 2560, 128, 1), (1, 20, 10, 5760, 128, 0), (11, 8, 8, 960, 128, 0)):
        for copy in ("cp_async", "tma"):
            rows += [wgmma(shape, (128, 80, 8, 2, "stages"), copy), wgmma(shape, (64, 80, 4, 3, "stages"), copy)]
        rows += [pingpong(shape, (128, 80, 8, 2)), pingpong(shape, (128, 160, 8, 2), persistent=1)]
    rows += [decode(*one) for one in ((5, 48, 8, 10240, 128, 64, 3, 3), (40, 24, 8, 2560, 128, 128, 2, 1),
                                      (1, 32, 4, 66560, 128, 64, 3, 32), (9, 20, 20, 1920, 64, 64, 3, 1))]
    for shape in ((3, 10, 10, 1280, 64, 1), (1, 12, 3, 2560, 128, 0)):
        rows += [unfused(shape, 128, 128, 8, kind) for kind in ("safe", "online")]
    for num_rows, columns in ((12288, 1280), (3000, 10240), (200, 40960)):
        rows += [softmax_case("safe", num_rows, columns, 1, 8), softmax_case("online", num_rows, columns, 1, 4),
                 softmax_case("safe", num_rows, columns, 4, 4)]
    return rows
