"""Instructions of a cubin, without a disassembler.

An instruction of Volta and later is 128 bits. Bits 0-8 are the opcode (9-11 the kinds of its operands), 12-14 the
predicate that guards it (7: none), 16-23 the destination, 24-31, 32-39 and 64-71 the sources; of a compare 81-83 the
predicate that it sets, 87-89 one that it reads, as a selection does; the compiler's control field is in bits 105-125:
105-108 the stall count, the cycles until the warp may issue again; 110-112 and 113-115 the scoreboards that the
instruction sets, 116-121 those it waits for."""
import struct
import subprocess

BRA, FSETP, ISETP, SEL, FSEL = 0x147, 0x00B, 0x00C, 0x007, 0x008
NO_PREDICATE = 7


def code_of(cubin):
    """The one .text section of an ELF file of 64 bits."""
    table, = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * size) for i in range(count)]
    for header in headers:
        if cubin[headers[names][4] + header[0]:].startswith(b".text."):
            return cubin[header[4]:header[4] + header[5]]
    raise ValueError("no code")


class Inst:
    def __init__(self, pc, low, high, low_byte_apart):
        self.pc, self.opcode = pc, low & 0x1FF
        self.destination, self.sources = low >> 16 & 255, (low >> 24 & 255, low >> 32 & 255, high & 255)
        self.stall = max(1, high >> 41 & 15)
        self.guard = low >> 12 & 7
        self.sets_predicate = high >> 17 & 7 if self.opcode in (FSETP, ISETP) else NO_PREDICATE
        self.reads_predicate = high >> 23 & 7 if self.opcode in (FSETP, ISETP, SEL, FSEL) else NO_PREDICATE
        self.target = None
        if self.opcode == BRA:  # a distance in units of 4 bytes; from sm_90 on its low byte stands in bits 16-23
            offset = (low >> 34 & (1 << 30) - 1) | (high & (1 << 18) - 1) << 30
            offset = offset - (1 << 48) if offset >> 47 else offset
            self.target = pc + 16 + 4 * (offset * 256 + self.destination if low_byte_apart else offset)


def insts_of(cubin, arch):
    code = code_of(cubin)
    return [Inst(pc, *struct.unpack_from("<QQ", code, pc), arch >= "sm_90") for pc in range(0, len(code), 16)]


def with_fields(cubin, fields, least):
    """The cubin with control fields overwritten: of each opcode the stall count, and which source registers stay in the operand cache for the
    next instruction of the warp (bits 122-125; None: as they are). Bit 109 is set, so that the scheduler need not go to another warp; with it
    counts of 12 and more are not what they say. ValueError: an opcode stands there less often than `least` times."""
    code = code_of(cubin)
    base, out, count = cubin.index(code), bytearray(cubin), dict.fromkeys(fields, 0)
    for pc in range(0, len(code), 16):
        low, high = struct.unpack_from("<QQ", code, pc)
        if low & 0x1FF not in fields:
            continue
        stall, kept = fields[low & 0x1FF]
        high = high & ~(15 << 41) | stall << 41 | 1 << 45
        if kept is not None:
            high = high & ~(15 << 58) | kept << 58
        struct.pack_into("<Q", out, base + pc + 8, high)
        count[low & 0x1FF] += 1
    if min(count.values()) < least:
        raise ValueError(f"instructions by opcode: {count}")
    return bytes(out)


def cuda_version():
    told = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    return told.split("release ")[1].split(",")[0]
