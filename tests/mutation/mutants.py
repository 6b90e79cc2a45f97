"""What can be changed: keys of an architecture model, named constants, mechanisms. Each change is a Mutant."""
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Mutant:
    name: str  # "arch h200 l2.ways", "constant sim/lower/lower.c MAX_SQUEEZE_PCT", "mechanism l2_hit_on_miss"
    file: str  # relative to the root
    edits: tuple  # (first character, end, new text) each; the first that the program accepts is taken
    tests: tuple = ()  # regular expressions of tests of its own, asked before those of its part


def closing(text, opening):
    """Index of the bracket that closes the one at `opening`; strings of Lua and comments are passed over."""
    depth, i = 0, opening
    while True:
        if text[i] == '"':
            i = text.index('"', i + 1)
        elif text.startswith("--", i):
            i = text.index("\n", i)
        elif text[i] in "({":
            depth += 1
        elif text[i] in ")}":
            depth -= 1
            if depth == 0:
                return i
        i += 1


def first_argument(text, opening):
    """The span of what stands between the bracket at `opening` and the first comma of its own."""
    depth, i = 0, opening + 1
    while depth > 0 or text[i] != ",":
        if text[i] == '"':
            i = text.index('"', i + 1)
        depth += (text[i] in "({") - (text[i] in ")}")
        i += 1
    return opening + 1, i


def key_value(text, section, key):
    """The span of the value of section.key in a model file, or None where the file does not set it."""
    begin = re.search(rf"^  {section} = \{{", text, re.M)
    if not begin:
        return None
    end = closing(text, begin.end() - 1)
    setting = re.compile(rf"(?<![\w]){key} = (?:datasheet|measured|guess)\(").search(text, begin.end(), end)
    return first_argument(text, setting.end() - 1) if setting else None


def arch_keys(root):
    """(section, key, allowed names or None) of every key of arch_keys.def."""
    text = (root / "sim/arch/arch_keys.def").read_text()
    for kind, section, key, third in re.findall(r'^FTL_ARCH_(INT|NAME)\((\w+), (\w+), "([^"]*)"', text, re.M):
        yield section, key, third.split("|") if kind == "NAME" else None


def other_values(old, allowed, change):
    """What a key's value becomes: one more, or a quarter more; else, should the program refuse that, other neighbours."""
    if allowed:
        return [f'"{name}"' for name in allowed if f'"{name}"' != old]
    if change == "quarter":
        return [f"({old}) * 5 // 4 + 1", f"({old}) * 2", f"({old}) // 2"]
    return [f"({old}) + 1", f"({old}) - 1", f"({old}) + 15000", f"({old}) * 2", f"({old}) // 2"]


def of_arch(root, arch, change):
    models = [root / f"arch_models/{arch}.lua"]
    while base := re.search(r': on "(\w+)"', models[-1].read_text()):
        models.append(root / f"arch_models/{base.group(1)}.lua")
    for section, key, allowed in arch_keys(root):
        for path in models:
            text = path.read_text()
            span = key_value(text, section, key)
            if span:
                edits = tuple((*span, new) for new in other_values(text[span[0]:span[1]], allowed, change))
                yield Mutant(f"arch {arch} {section}.{key}", str(path.relative_to(root)), edits)
                break


def of_constants(root, folder):
    """Named integers of the .c files: `enum { NAME = 3, ... }` and `static const T name = 3`. Headers are left out:
    a change there rebuilds half of the program."""
    item = re.compile(r"\b([A-Z][A-Z_0-9]*) = ((?:0x)?[0-9a-f]+(?: << [0-9]+)?)(?=[,} ])")
    for path in sorted((root / folder).rglob("*.c")):
        text = path.read_text()
        spans = [(m.start(), m.end()) for m in re.finditer(r"\benum \{.*?\}", text, re.S)]
        found = [m for span in spans for m in item.finditer(text, *span)]
        found += re.finditer(r"^static const \w+ (\w+) = (\d+);", text, re.M)
        for m in found:
            name = f"constant {path.relative_to(root)} {m.group(1)}"
            yield Mutant(name, str(path.relative_to(root)), ((*m.span(2), f"({m.group(2)}) + 1"),))


def mechanisms():
    return tomllib.loads((HERE / "mechanisms.toml").read_text()).items()


def misplaced_mechanisms(root):
    """A line for each whose old text does not stand once in its file."""
    for name, m in mechanisms():
        times = (root / m["file"]).read_text().count(m["old"])
        if times != 1:
            yield f"mechanisms.toml: {name}: its old text stands {times} times in {m['file']}, must be 1"


def of_mechanisms(root):
    for name, m in mechanisms():
        at = (root / m["file"]).read_text().index(m["old"])
        yield Mutant(f"mechanism {name}", m["file"], ((at, at + len(m["old"]), m["new"]),), tuple(m.get("tests", ())))
