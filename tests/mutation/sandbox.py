"""A copy of the tree in which mutants live, its build, and its tests. The tree itself is never touched."""
import json
import shutil
import subprocess


class Sandbox:
    def __init__(self, root, work):
        self.root, self.source, self.build = root, work / "source", work / "build"
        self.copy_tree()
        self.call(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DCMAKE_C_FLAGS=-w"])  # an unused variable is no discovery
        self.commands = self.list_tests()

    @staticmethod
    def call(command):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def list_tests(self):
        """CTest's names, and the command of each whose program has been built, as env runs it."""
        listed = json.loads(self.call(["ctest", "--test-dir", self.build, "--show-only=json-v1"]).stdout)
        return {t["name"]: ["env", *self.environment(t), *t["command"]] if "command" in t else None
                for t in listed["tests"]}

    @staticmethod
    def environment(test):
        return [setting for p in test.get("properties", []) if p["name"] == "ENVIRONMENT" for setting in p["value"]]

    def copy_tree(self):
        """Every file that git tracks or does not ignore; unchanged files keep their time, so that nothing is rebuilt."""
        names = self.call(["git", "-C", self.root, "ls-files", "-co", "--exclude-standard"]).stdout.splitlines()
        for name in names:
            old, new = self.root / name, self.source / name
            if not old.is_file() or (new.is_file() and old.read_bytes() == new.read_bytes()):
                continue
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(old, new)

    def keep_goldens_of(self, arch):
        """Golden lines of other chips cannot notice a change of this one's model, and take their time."""
        file = "tests/golden/small/goldens.def"
        lines = self.read(file).splitlines(keepends=True)
        self.write(file, "".join(l for l in lines if not l.startswith("    {") or l.startswith(f'    {{"{arch}"')))

    def read(self, file):
        return (self.source / file).read_text()

    def write(self, file, text):
        (self.source / file).write_text(text)

    def make(self, targets):
        """False when the mutant does not compile."""
        return subprocess.run(["ninja", "-C", self.build, *targets], capture_output=True).returncode == 0

    def accepts(self, arch):
        """Whether the program takes the model: the rules between keys hold."""
        return subprocess.run([self.build / "foretile", "arch", "check", self.source / f"arch_models/{arch}.lua"],
                              capture_output=True).returncode == 0

    def killer(self, tests, seconds):
        """The first test that fails or does not end; "" when all pass. Each is built when its turn comes."""
        for test in tests:
            if not self.make(["test_" + test.replace("/", "_")]):  # as ftl_add_test names its target
                return "compiler"
            if not self.commands[test]:
                self.commands = self.list_tests()
            try:
                done = subprocess.run([*self.commands[test], "--fail-fast"], capture_output=True, text=True,
                                      timeout=seconds, cwd=self.build)
            except subprocess.TimeoutExpired:
                return f"{test} (does not end)"
            if done.returncode != 0:
                return test
        return ""
