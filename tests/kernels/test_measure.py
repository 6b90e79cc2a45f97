"""kernels/measure.py: a file of results is replaced by a whole run or not at all, and the exit status tells of every run that failed. Programs and ncu are stand-ins."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "kernels"))
import measure  # noqa: E402

TOOL = ROOT / "tests" / "fake" / "gpu_tools" / "tool"
BEFORE = "of an earlier run\n"
TWO_ROWS = "printf 'it,v,p,1,m,2,u\\nit,v,p,2,m,3,u\\n'"


class Measure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.out, self.bin = self.work / "out", self.work / "built" / "bin"
        for path in (self.out, self.bin, self.work / "cuda" / "bin", self.work / "path"):
            path.mkdir(parents=True)
        for name, where in (("ncu", "cuda/bin"), ("nvcc", "cuda/bin"), ("nvidia-smi", "path"), ("cmake", "path"), ("attention_bench", "built/bin")):
            (self.work / where / name).symlink_to(TOOL)

    def program(self, name, script):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def cases(self, *heads):
        """A file of cases of own kernels; its stand-in finds one of 7 heads wrong."""
        header, first = (ROOT / "kernels" / "cases" / "compiled.csv").read_text().split("\n")[:2]
        path = self.work / "some.csv"
        path.write_text("\n".join([header, *(first.replace(",4,2,512,512,", f",{n},{n},512,512,") for n in heads)]) + "\n")
        return str(path)

    def before(self, *names):
        for name in names:
            (self.out / name).write_text(BEFORE)

    def run_it(self, *words, **environment):
        """Gives the exit status; what was said is in self.said."""
        environment = dict(os.environ, PATH=f"{self.work / 'path'}:{os.environ['PATH']}", CUDA_HOME=str(self.work / "cuda"), PYTHONDONTWRITEBYTECODE="1", **environment)
        ran = subprocess.run([sys.executable, str(ROOT / "kernels" / "measure.py"), "--out", str(self.out), "--build", str(self.work / "built"), *words],
                             capture_output=True, text=True, env=environment)
        self.said = ran.stdout + ran.stderr
        return ran.returncode

    def assert_as_before(self, name):
        self.assertEqual((self.out / name).read_text(), BEFORE)

    def assert_replaced(self, name, num_rows):
        lines = [line for line in (self.out / name).read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(len(lines), 1 + num_rows, lines)

    # microbenchmarks

    def test_a_whole_microbenchmark_replaces_its_file(self):
        self.before("micro_chase.csv")
        self.program("micro_chase", TWO_ROWS)
        self.assertEqual(self.run_it("micro", "chase"), 0)
        self.assert_replaced("micro_chase.csv", 2)
        self.assertEqual(list(self.out.glob("*.partial")), [])

    def test_a_microbenchmark_that_crashes_leaves_its_file_and_the_others_run(self):
        self.before("micro_chase.csv", "micro_alu.csv")
        self.program("micro_chase", TWO_ROWS + "\nkill -SEGV $$")
        self.program("micro_alu", TWO_ROWS)
        self.assertEqual(self.run_it("micro", "chase", "alu"), 1)
        self.assert_as_before("micro_chase.csv")
        self.assert_replaced("micro_alu.csv", 2)

    def test_a_microbenchmark_that_hangs_leaves_its_file(self):
        self.before("micro_chase.csv")
        with self.assertRaisesRegex(measure.RunFailed, "micro_chase: not done after 0.2 s"):
            measure.write_output(self.out / "micro_chase.csv", ["sh", "-c", TWO_ROWS + "; exec sleep 60"], {}, measure.ROW_HEADER, 0.2)
        self.assert_as_before("micro_chase.csv")

    def test_a_microbenchmark_without_rows_leaves_its_file(self):
        self.before("micro_chase.csv")
        self.program("micro_chase", "true")
        self.assertEqual(self.run_it("micro", "chase"), 1)
        self.assert_as_before("micro_chase.csv")

    def test_a_microbenchmark_that_is_not_there_is_missing(self):
        self.assertEqual(self.run_it("micro", "chase"), 2)
        self.assertEqual(self.run_it("micro", "no_such"), 2)
        self.assertIn("there is no microbenchmark no_such", self.said)

    def test_rows_of_a_profiled_microbenchmark_are_launches_or_nothing(self):
        self.program("micro_coalescer", TWO_ROWS)
        for launches, status in (("1", 1), ("3", 1), ("0", 1), ("2", 0)):
            self.before("micro_coalescer_ncu.csv")
            self.assertEqual(self.run_it("micro", "coalescer", FAKE_GPU_LAUNCHES=launches), status, launches)
            if status:
                self.assertIn(f"micro_coalescer: {launches} launches profiled, 2 expected", self.said)
                self.assert_as_before("micro_coalescer_ncu.csv")
        self.assert_replaced("micro_coalescer_ncu.csv", 2)

    def test_every_profiled_microbenchmark_has_a_kernel_that_the_profile_sees(self):
        folder = ROOT / "kernels" / "micro"
        for name in measure.PROFILED_MICRO:
            source = (folder / f"{name}.cu").read_text()
            for header in re.findall(r'#include "(\w+\.h)"', source):
                source += (folder / header).read_text() if (folder / header).exists() else ""
            self.assertRegex(source, rf"__global__[^;{{]*\b\w*({measure.MICRO_KERNELS})\w*\(", name)

    def test_a_failed_profile_of_a_microbenchmark_fails_it(self):
        self.before("micro_coalescer_ncu.csv")
        self.program("micro_coalescer", TWO_ROWS)
        self.assertEqual(self.run_it("micro", "coalescer", FAKE_GPU_FAIL="ncu"), 1)
        self.assert_as_before("micro_coalescer_ncu.csv")

    # cases

    def test_a_wrong_case_fails_the_command_and_the_others_are_kept(self):
        self.assertEqual(self.run_it("attention", self.cases(4, 7)), 1)
        self.assertIn("2 cases, 1 failed", self.said)
        self.assert_replaced("attention_some_stream.csv", 2)
        self.assert_replaced("attention_some_ncu.csv", 1)
        self.assertEqual(self.run_it("attention", self.cases(4, 8)), 0)

    def test_launches_that_are_not_those_of_the_cases_are_not_written(self):
        for launches in ("1", "3"):
            self.before("attention_some_ncu.csv")
            self.assertEqual(self.run_it("attention", self.cases(4, 8), FAKE_GPU_LAUNCHES=launches), 1)
            self.assertIn(f"{launches} launches profiled, 2 expected", self.said)
            self.assert_as_before("attention_some_ncu.csv")
            self.assert_replaced("attention_some_stream.csv", 2)

    def test_a_failed_profile_fails_every_command_that_profiles(self):
        for what, name in (("attention", "attention_some_ncu.csv"), ("opcodes", "opcodes_some.csv"), ("ports", "some_ncu.csv")):
            self.before(name)
            self.assertEqual(self.run_it(what, self.cases(4, 8), FAKE_GPU_FAIL="ncu"), 1, what)
            self.assert_as_before(name)

    def test_cases_that_end_early_are_not_written(self):
        self.before("attention_some_stream.csv")
        self.program("attention_bench", "head -n 1 \"$1\" | sed s/$/,status,launches/; printf 'flash2_fwd,1,4'; exit 1")
        self.assertEqual(self.run_it("attention", self.cases(4), "--no-ncu"), 1)
        self.assertIn("ended with status 1 in row 1 of 1", self.said)
        self.assert_as_before("attention_some_stream.csv")

    def test_opcodes_and_ports_are_of_all_launches_or_nothing(self):
        for what, name in (("opcodes", "opcodes_some.csv"), ("ports", "some_ncu.csv")):
            self.before(name)
            self.assertEqual(self.run_it(what, self.cases(4, 8), FAKE_GPU_LAUNCHES="1"), 1)
            self.assert_as_before(name)
            self.assertEqual(self.run_it(what, self.cases(4, 7)), 1)
            self.assertIn("1 of 2 cases failed", self.said)
            self.assertEqual(self.run_it(what, self.cases(4, 8)), 0)
            self.assert_replaced(name, 2)

    def test_a_foreign_case_has_the_launches_and_the_verdict_of_its_stream_run(self):
        rows = [{"source": source, "status": "ok", "launches": ""} for source in "abc"]
        timed = [{"status": "ok", "launches": "1"}, {"status": "wrong", "launches": "2"}, {"status": "unchecked", "launches": "1"}]
        launches = [{"Kernel Name": name, "dram__bytes_read.sum": "1"} for name in ("a1", "b1", "b2", "c1")]
        joined = measure.ncu_rows(rows, timed, launches, "some", {}, 0)
        self.assertEqual([(row["source"], row["kernel"], row["status"]) for row in joined], [("a", "a1", "ok"), ("b", "b1", "wrong"), ("b", "b2", "wrong"), ("c", "c1", "unchecked")])
        with self.assertRaisesRegex(measure.RunFailed, "3 launches profiled, 4 expected"):
            measure.ncu_rows(rows, timed, launches[:3], "some", {}, 0)

    # the others

    def test_tiles_and_timeline_fail_with_their_programs(self):
        (self.work / "torch.py").write_text("raise SystemExit(5)\n")
        for what, name in (("tiles", "some.csv"), ("timeline", "eager_timeline.csv")):
            self.before(name)
            self.assertEqual(self.run_it(what, self.cases(4), PYTHONPATH=str(self.work)), 1, what)
            self.assertIn("ended with status 5", self.said)
            self.assert_as_before(name)

    def test_a_trace_that_fails_leaves_its_file_and_the_others_are_made(self):
        self.before("cta_trace.csv", "cta_drift.csv")
        self.program("cta_trace", "echo a,b; exit 1")
        for name in ("cta_drift", "cta_spread", "cta_spread_wgmma", "cta_clocks"):
            self.program(name, TWO_ROWS)
        self.assertEqual(self.run_it("trace", "ctas"), 1)
        self.assert_as_before("cta_trace.csv")
        self.assert_replaced("cta_drift.csv", 2)

    def test_a_failed_build_fails(self):
        self.assertEqual(self.run_it("build", FAKE_GPU_FAIL="cmake"), 1)
        self.assertIn("building the kernels failed with status 3", self.said)

    LISTED = """printf '{"case": 0, "workload": "flash2_fwd", "causal": true, "block_m": 64, "launches": 1}\\n{"case": 1, "workload": "flash_decode", "splits": 4, "launches": 2}\\n'"""

    def family(self, time, check="true"):
        """A family of two cases with three launches."""
        self.program("independent_some", f"case $1 in list) {self.LISTED} ;; check) {check} ;; time) {time} ;; esac")

    def test_a_family_has_a_row_a_case_and_a_row_a_launch(self):
        self.family("""printf '{"case": 0, "us": 10.5}\\n{"case": 1, "us": 3}\\n'""")
        self.assertEqual(self.run_it("independent", "some", FAKE_GPU_LAUNCHES="3"), 0, self.said)
        self.assert_replaced("independent_some_stream.csv", 2)
        self.assert_replaced("independent_some_ncu.csv", 3)
        first = (self.out / "independent_some_stream.csv").read_text().splitlines()[:2]
        self.assertTrue(first[0].startswith("source,family,workload,causal,block_m,splits,status,"), first)
        self.assertTrue(first[1].startswith("independent,some,flash2_fwd,1,64,,ok,"), first)

    def test_nothing_is_written_of_a_family_that_is_wrong(self):
        self.before("independent_some_stream.csv", "independent_some_ncu.csv")
        self.family("true", check="false")
        self.assertEqual(self.run_it("independent", "some", FAKE_GPU_LAUNCHES="3"), 1)
        self.assert_as_before("independent_some_stream.csv")
        self.assert_as_before("independent_some_ncu.csv")

    def test_a_family_whose_launches_are_not_all_there_keeps_its_rows(self):
        self.before("independent_some_stream.csv", "independent_some_ncu.csv")
        self.family("""printf '{"case": 0, "us": 10.5}\\n'""")
        self.assertEqual(self.run_it("independent", "some", FAKE_GPU_LAUNCHES="2"), 1)
        self.assertIn("1 of 2 cases timed", self.said)
        self.assertIn("2 launches profiled, 3 expected", self.said)
        self.assert_as_before("independent_some_stream.csv")
        self.assert_as_before("independent_some_ncu.csv")


if __name__ == "__main__":
    unittest.main()
