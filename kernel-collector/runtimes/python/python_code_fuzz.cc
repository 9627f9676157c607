// The input is an image of a process's memory, with a version of Python and the address of a code object before it. The
// chain's check is the one that the BPF program would have computed from the same memory. The input may also change the
// numbers with which the interpreter describes its structures (_Py_DebugOffsets), and ask for the checks of types.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "elf/byte_reader.h"
#include "kernel-collector/runtimes/python/code_object.h"
#include "kernel-collector/runtimes/python/memory_image_testing.h"
#include "kernel-collector/runtimes/python/python_layout_testing.h"

namespace tributary {
namespace {

template <typename T>
T At(ProcessMemory& memory, uint64_t address) {
  T value{};
  const ProcessMemory::Part part{address, {reinterpret_cast<char*>(&value), sizeof(value)}};
  return memory.Read({&part, 1}).ok() ? value : 0;
}

// The bits of the input's second byte.
constexpr uint8_t kFreeThreaded = 1, kChanged = 2, kHasTypes = 4;

// Changes numbers of the description: count, then place and value of each.
absl::StatusOr<PythonLayout> ChangedLayout(int minor, bool free_threaded, ByteReader& reader) {
  std::string bytes = testing::DebugOffsets(minor, free_threaded);
  for (unsigned count = reader.Byte(); count > 0; --count) {
    const size_t place = reader.Byte() * size_t{8};
    const uint64_t value = reader.Fixed<uint16_t>();
    if (place >= 24 && place < bytes.size()) std::memcpy(bytes.data() + place, &value, sizeof(value));
  }
  return DescribedPythonLayout({.minor = minor, .free_threaded = free_threaded}, bytes);
}

// The types that the objects have. A real interpreter has fixed ones.
PythonTypes TypesOf(ProcessMemory& memory, const PythonLayout& layout, uint64_t code) {
  const auto type = [&](uint64_t object) { return At<uint64_t>(memory, object + layout.type); };
  return {type(code), type(At<uint64_t>(memory, code + layout.code_filename)),
          type(At<uint64_t>(memory, code + layout.code_line_table))};
}

uint32_t Check(ProcessMemory& memory, const trib_python& walk, uint64_t code) {
  uint64_t hash = 0;
  for (unsigned i = 0; i < walk.check_bytes; i += 8) {
    hash = TRIB_CHECK_ADD(hash, At<uint64_t>(memory, code + walk.check_first + i));
  }
  hash = TRIB_CHECK_ADD(hash, At<uint64_t>(memory, At<uint64_t>(memory, code + walk.code_name) + walk.name_hash));
  return static_cast<uint32_t>(hash >> 32);
}

void Require(bool holds) {
  if (!holds) abort();
}

}  // namespace
}  // namespace tributary

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  ByteReader reader({reinterpret_cast<const char*>(data), size});
  const uint8_t minor = reader.Byte(), bits = reader.Byte();
  const auto address = reader.Fixed<uint64_t>();
  if (reader.bad() || minor < PythonLayout::kMinorMin || minor > PythonLayout::kMinorMax) return 0;
  const bool free_threaded = minor >= 13 && (bits & kFreeThreaded) != 0;
  absl::StatusOr<PythonLayout> described;
  if (minor >= 13 && (bits & kChanged) != 0) {
    described = ChangedLayout(minor, free_threaded, reader);
    if (!described.ok()) return 0;
  } else {
    described = testing::LayoutOf(minor, free_threaded);
  }
  const PythonLayout& layout = *described;
  testing::MemoryImage memory(reader.rest());
  const uint32_t check = Check(memory, layout.walk, address);
  const PythonTypes types = (bits & kHasTypes) != 0 ? TypesOf(memory, layout, address) : PythonTypes();
  memory.reads = 0;
  auto function = ReadPythonFunction(layout, types, memory, {address, check});
  Require(memory.reads <= 4);
  if (!function.ok()) return 0;
  Require(!(*function)->name.empty() && (*function)->name.size() <= kPythonNameBytesMax);
  Require((*function)->file.size() <= kPythonFileBytesMax);
  Require((*function)->bytes() <= 8 * RuntimeBinary::kObjectBytesMax);
  Require((*function)->LineAt(-2) == (*function)->first_line);
  for (int32_t position = 0; position >= 0 && position < 1 << 20; position = position * 2 + 2) {
    Require((*function)->LineAt(position) <= INT32_MAX);
  }
#ifdef TRIBUTARY_PLANT_CRASH
  // Only a well-formed object with this name and a line table reaches this check.
  Require((*function)->name != "Planted.crash");
#endif
  (*function)->LineAt(INT32_MAX);
  return 0;
}
