"""kernels/foreign: which status a case ends with. Gradients themselves need PyTorch (of any device); the rest goes without, by stand-ins."""
import contextlib
import csv
import io
import math
import pathlib
import sys
import unittest
from unittest import mock

FOREIGN = pathlib.Path(__file__).resolve().parents[2] / "kernels" / "foreign"
sys.path.insert(0, str(FOREIGN))
try:
    import torch
    has_torch = hasattr(torch, "float8_e4m3fn")
except ImportError:
    has_torch = False
if not has_torch:
    torch = sys.modules["torch"] = mock.MagicMock()
sys.modules["calls"] = mock.MagicMock()  # kernels, which need a GPU
import foreign_bench  # noqa: E402
import gradients  # noqa: E402
import problems  # noqa: E402

CASE = {"source": "sdpa_flash", "pass": "bwd", "batch": "2", "heads": "6", "kv_heads": "3", "seqlen_q": "96", "seqlen_kv": "96", "head_dim": "16", "causal": "1"}


class Status(unittest.TestCase):
    def result(self, case, gradient_error, *words):
        """The row that foreign_bench.py writes of a case whose gradients have that error."""
        said = io.StringIO()
        stand_ins = dict(read_cases=lambda path: [case], make_inputs=lambda case: (None, None, None), kernels_of=lambda call: ["a", "b"], time_us=lambda call, flush: [1.0] * 5,
                         triton_facts=lambda call: [""] * 5, torch=mock.MagicMock(), gradient_error=lambda *_: gradient_error, error_of=lambda *_: 1e-4)
        with mock.patch.multiple(foreign_bench, **stand_ins), mock.patch.object(sys, "argv", ["foreign_bench.py", *words, "cases.csv"]), contextlib.redirect_stdout(said):
            foreign_bench.main()
        return next(csv.DictReader(io.StringIO(said.getvalue())))

    def test_a_wrong_backward_fails(self):
        self.assertEqual(self.result(CASE, 0.5)["status"], "wrong")
        self.assertEqual(self.result(CASE, math.nan)["status"], "wrong")

    def test_a_right_backward_is_ok_and_says_its_error(self):
        row = self.result(CASE, 3e-4)
        self.assertEqual((row["status"], row["o_error"], row["launches"]), ("ok", "0.0003", "2"))

    def test_a_backward_that_cannot_be_compared_is_unchecked_in_both_runs(self):
        case = dict(CASE, dropout_p="0.1")
        self.assertEqual(self.result(case, 3e-4)["status"], "unchecked")
        self.assertEqual(self.result(case, 3e-4, "--profile")["status"], "unchecked")

    def test_forward_cases_are_ok_as_before(self):
        self.assertEqual(self.result(dict(CASE, **{"pass": "fwd"}), 0.5)["status"], "ok")


class WorstError(unittest.TestCase):
    def test_nan_is_the_worst_wherever_it_comes(self):
        for errors in ([math.nan, 1e-4, 2e-4], [1e-4, math.nan, 2e-4], [1e-4, 2e-4, math.nan], [math.inf, math.nan]):
            self.assertTrue(math.isnan(problems.worst_error(errors)) or problems.worst_error(errors) == math.inf, errors)
        self.assertEqual(problems.worst_error([1e-4, 3e-4, 2e-4]), 3e-4)


@unittest.skipUnless(has_torch, "there is no PyTorch")
class Gradients(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def attention(self, q, k, v):
        """By the library, not by the definition that gradients.py has."""
        group = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
        return torch.nn.functional.softmax(torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[3]) + torch.full((q.shape[2], k.shape[2]), -math.inf, dtype=q.dtype).triu(1), dim=-1) @ v

    def problem(self):
        q, k, v = (torch.randn(2, heads, 96, 16, dtype=torch.float32, requires_grad=True) for heads in (6, 3, 3))
        call = gradients.gradient_call(self.attention(q, k, v), (q, k, v))
        return call, (q, k, v)

    def error(self, got, call, inputs, case=CASE):
        return gradients.gradient_error(case, got, call.gradient, *inputs)

    def test_right_gradients_of_grouped_heads_are_right(self):
        call, inputs = self.problem()
        self.assertLess(self.error(call(), call, inputs), 1e-5)

    def test_scores_of_many_rows_come_in_pieces(self):
        call, inputs = self.problem()
        with mock.patch.object(gradients, "ROWS_AT_ONCE", 40):
            self.assertLess(self.error(call(), call, inputs), 1e-5)

    def test_each_gradient_is_looked_at(self):
        for which in range(3):
            call, inputs = self.problem()
            got = [x.clone() for x in call()]
            got[which] *= 1.01
            self.assertGreater(self.error(got, call, inputs), 9e-3, which)

    def test_a_tile_that_was_left_out_is_seen(self):
        call, inputs = self.problem()
        got = [x.clone() for x in call()]
        got[1][:, :, 64:96] = 0
        self.assertGreater(self.error(got, call, inputs), 3e-2)

    def test_nan_is_an_error(self):
        call, inputs = self.problem()
        got = [x.clone() for x in call()]
        got[0][:] = math.nan
        self.assertFalse(self.error(got, call, inputs) < 1)

    def test_nan_in_the_first_sampled_head_of_an_output_is_an_error(self):
        _, inputs = self.problem()
        case, out = dict(CASE, **{"pass": "fwd"}), self.attention(*inputs).detach()
        self.assertLess(problems.error_of(case, out, *inputs), 1e-5)
        out[0, 1] = math.nan
        self.assertFalse(problems.error_of(case, out, *inputs) < 1)

    def test_the_mask_counts(self):
        call, inputs = self.problem()
        self.assertGreater(self.error(call(), call, inputs, dict(CASE, causal="0")), 0.1)

    def test_gradients_in_one_tensor_are_taken_apart(self):
        qkv = torch.randn(2, 96, 3, 4, 16, requires_grad=True)
        call = gradients.gradient_call(self.attention(*(x.transpose(1, 2) for x in qkv.unbind(2))).transpose(1, 2), (qkv,))
        inputs = [x.transpose(1, 2) for x in qkv.detach().unbind(2)]
        self.assertLess(self.error(call(), call, inputs), 1e-5)


if __name__ == "__main__":
    unittest.main()
