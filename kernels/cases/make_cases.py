#!/usr/bin/env python3
"""Writes the case lists of this folder: which kernels at which shapes.  Everything here is chosen, nothing is measured.  lists/ has the
cases, a kind of kernel or a set a file.

    make_cases.py [--check]       --check writes nothing and fails if a list is not what this script would write"""
import random

from lists import (
    chips, chosen_own, chosen_sets, drawn_own, drawn_sets, eighth_own, eighth_set, first_sets, foreign, fourth_own, fourth_set,
    own_backward, own_forward, own_other, products, third_set, waves)
from lists.foreign_kernels import FOREIGN_COLUMNS
from lists.own_kernels import (
    BACKWARD_COLUMNS, COLUMNS, COMPILED_COLUMNS, FORM_COLUMNS, PAGED_COLUMNS, QUANTIZED_COLUMNS, SET_COLUMNS, TREE_COLUMNS, VALUE_COLUMNS, WINDOW_COLUMNS,
    fits_shared_memory)
from lists.products import PRODUCT_COLUMNS, WGMMA_PRODUCT_COLUMNS
from lists.writing import anything, as_in_their_files, every_other, every_third, none_to_calibrate, unseen, write

UNPARTED_WGMMA_PRODUCT_COLUMNS = WGMMA_PRODUCT_COLUMNS[:-1]
LAST_SET = 38


def write_own():
    write("smoke.csv", own_forward.smoke())
    write("hopper_smoke.csv", own_forward.hopper_smoke())
    write("hopper.csv", own_forward.hopper())
    write("hopper_long.csv", own_forward.hopper_long())
    write("persistent.csv", own_forward.persistent())
    write("repeat.csv", own_forward.repeat())
    write("repeat_more.csv", own_other.repeat_more(), keep=anything, part=as_in_their_files)
    write("other.csv", own_other.other())
    write("other_more.csv", own_other.other_more(), part=every_third)
    write("softmax.csv", own_other.softmax(), part=every_third)
    write("ragged.csv", own_forward.ragged(), keep=fits_shared_memory, part=every_third)
    write("single_buffer.csv", own_forward.single_buffer(), part=every_third)
    write("window_dropout.csv", own_forward.window_dropout(), WINDOW_COLUMNS, part=every_other)
    write("paged.csv", own_other.paged(), PAGED_COLUMNS, anything, every_other)
    write("tree.csv", own_other.tree(), TREE_COLUMNS, anything, every_other)
    write("flash1.csv", own_other.flash1(), keep=anything, part=every_other)
    write("quantized.csv", own_other.quantized(), QUANTIZED_COLUMNS, anything, every_other)
    write("values.csv", own_forward.values(), VALUE_COLUMNS)
    write("few_keys.csv", own_forward.few_keys(), [*COLUMNS, "part"], keep=anything)
    write("backward_own.csv", own_backward.own(), BACKWARD_COLUMNS, keep=anything)
    write("wide.csv", own_forward.wide(), part=every_other)
    write("forms.csv", own_forward.forms(), FORM_COLUMNS, part=every_third)
    write("products.csv", products.products(), PRODUCT_COLUMNS, anything, every_other)
    write("wgmma_products.csv", products.wgmma_products(), WGMMA_PRODUCT_COLUMNS, anything)
    write("waves_own.csv", waves.own(), keep=anything, part=none_to_calibrate)
    write("compiled.csv", own_other.compiled(), COMPILED_COLUMNS, keep=anything)
    write("flash2.csv", own_forward.flash2())
    write("long.csv", own_forward.long())


def write_foreign():
    write("waves_library.csv", waves.library(), FOREIGN_COLUMNS, anything, none_to_calibrate)
    write("foreign_smoke.csv", foreign.foreign_smoke(), FOREIGN_COLUMNS, anything)
    write("triton.csv", foreign.triton(), FOREIGN_COLUMNS, anything)
    write("triton_more.csv", foreign.triton_more(), FOREIGN_COLUMNS, anything)
    write("library.csv", foreign.library(), FOREIGN_COLUMNS, anything)
    write("library_more.csv", foreign.library_more(), FOREIGN_COLUMNS, anything)
    write("efficient.csv", foreign.efficient(), FOREIGN_COLUMNS, anything)
    write("splits.csv", foreign.splits(), FOREIGN_COLUMNS, anything)
    write("types.csv", foreign.types(), [*FOREIGN_COLUMNS, "dtype", "transpose_b"], anything, none_to_calibrate)
    write("descriptors.csv", foreign.descriptors(), FOREIGN_COLUMNS, anything)
    write("backward.csv", foreign.backward(), FOREIGN_COLUMNS, anything)
    write("triton_wide.csv", foreign.triton_wide(), [*FOREIGN_COLUMNS, "block_k"], anything, none_to_calibrate)


def write_chips():
    write("chips_own.csv", chips.own(), keep=anything, part=none_to_calibrate)
    write("chips_wgmma_products.csv", chips.chips(products.wgmma_products(), 8), UNPARTED_WGMMA_PRODUCT_COLUMNS, anything,
          none_to_calibrate)
    write("chips_triton.csv", chips.chips(foreign.triton(), 7), FOREIGN_COLUMNS, anything, none_to_calibrate)
    write("chips_library.csv", chips.chips(foreign.library(), 4), FOREIGN_COLUMNS, anything, none_to_calibrate)


def write_set(number, kind, rows, columns):
    write(f"unseen{'' if number == 1 else number}_{kind}.csv", rows, columns, anything, unseen)


def write_chosen_sets():
    write_set(1, "own", first_sets.unseen_own(), COLUMNS)
    write_set(1, "triton", first_sets.unseen_triton(), FOREIGN_COLUMNS)
    write_set(1, "library", first_sets.unseen_library(), FOREIGN_COLUMNS)
    write_set(2, "triton", first_sets.unseen2_triton(), FOREIGN_COLUMNS)
    write_set(2, "flex", first_sets.unseen2_flex(), FOREIGN_COLUMNS)
    write_set(2, "library", first_sets.unseen2_library(), FOREIGN_COLUMNS)
    for number, module in ((3, third_set), (4, fourth_set)):
        for kind, cases_of in module.FOREIGN.items():
            write_set(number, kind, cases_of(), module.FOREIGN_COLUMNS_OF[kind])
    write_set(4, "own", fourth_own.own(), COLUMNS)
    for number, chosen in chosen_sets.CHOSEN.items():
        for kind, cases_of in chosen_sets.FOREIGN.items():
            write_set(number, kind, cases_of(chosen), fourth_set.FOREIGN_COLUMNS_OF[kind])
        write_set(number, "own", chosen_own.own(chosen_own.CHOSEN[number]), SET_COLUMNS)
        write_set(number, "products", chosen_own.products(chosen_own.CHOSEN[number]), PRODUCT_COLUMNS)


def write_drawn_sets():
    for kind, cases_of in eighth_set.FOREIGN.items():
        write_set(8, kind, cases_of(), fourth_set.FOREIGN_COLUMNS_OF[kind])
    write_set(8, "own", eighth_own.own(), SET_COLUMNS)
    write_set(8, "products", eighth_own.products(), PRODUCT_COLUMNS)
    write_set(8, "wgmma_products", eighth_own.wgmma_products(), UNPARTED_WGMMA_PRODUCT_COLUMNS)
    for number in range(9, LAST_SET + 1):
        write_set(number, "own", drawn_own.own(random.Random(100 * number + 7)), SET_COLUMNS)
        write_set(number, "products", drawn_own.products(random.Random(100 * number + 8)), PRODUCT_COLUMNS)
        wgmma_products = drawn_own.wgmma_products if number < 11 else drawn_own.compiled_wgmma_products
        write_set(number, "wgmma_products", wgmma_products(random.Random(100 * number + 9)), UNPARTED_WGMMA_PRODUCT_COLUMNS)
        for kind, cases in drawn_sets.foreign(number).items():
            write_set(number, kind, cases, drawn_sets.FOREIGN_COLUMNS_OF[kind])


if __name__ == "__main__":
    write_own()
    write_foreign()
    write_chips()
    write_chosen_sets()
    write_drawn_sets()
