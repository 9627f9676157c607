#include "kernel-collector/runtimes/python/python_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>

#include "base/status.h"
#include "elf/elf_format.h"

namespace tributary {
namespace {

static_assert(std::has_unique_object_representations_v<trib_python>);  // memcmp compares them

constexpr unsigned kFrameBytesMax = 128;  // see trib_python
constexpr unsigned kCheckBytesMax = 96;
constexpr unsigned kOffsetMax = 4096;
constexpr unsigned kCodeBytesMax = 256;  // up to the last field that is read

// Offsets in the structures of one version, of a build without options. Source: CPython's headers of the version,
// compiled. Versions from 3.13 on are not here, because they describe themselves.
struct Version {
  int minor;
  uint16_t thread_id, frame, cframe_frame;
  uint16_t frame_bytes, frame_back, frame_code, frame_instruction, frame_owner;
  uint16_t filename, name, qualified_name, line_table, first_line, instructions;
  uint16_t text_ascii, text_compact;
};
constexpr Version kVersions[] = {
    {6, 152, 24, 0, 128, 24, 32, 120, 0, 96, 104, 0, 112, 36, 0, 48, 72},
    {7, 176, 24, 0, 112, 24, 32, 104, 0, 96, 104, 0, 112, 36, 0, 48, 72},
    {8, 176, 24, 0, 112, 24, 32, 104, 0, 104, 112, 0, 120, 40, 0, 48, 72},
    {9, 176, 24, 0, 112, 24, 32, 104, 0, 104, 112, 0, 120, 40, 0, 48, 72},
    {10, 176, 24, 0, 104, 24, 32, 96, 0, 104, 112, 0, 120, 40, 0, 48, 72},
    {11, 152, 56, 8, 80, 48, 32, 56, 68, 112, 120, 128, 136, 72, 184, 48, 72},
    {12, 136, 56, 0, 80, 8, 0, 56, 70, 112, 120, 128, 136, 68, 192, 40, 56},
};

absl::Status Unsupported(std::string_view why) {
  return Error(absl::StatusCode::kUnimplemented, fmt::format("CPython: {}", why));
}

// Sets the fields that follow from the version and from the other fields. Checks all offsets.
absl::StatusOr<PythonLayout> Complete(const PythonBuild& build, PythonLayout layout) {
  trib_python& walk = layout.walk;
  walk.musl = build.musl ? 1 : 0;
  walk.has_cframe = build.minor == 11 || build.minor == 12 ? 1 : 0;
  walk.entry = build.minor <= 10   ? TRIB_PYTHON_ENTRY_EACH
               : build.minor == 11 ? TRIB_PYTHON_ENTRY_FLAG
                                   : TRIB_PYTHON_ENTRY_OWNER;
  walk.instruction_is_pointer = build.minor >= 11 ? 1 : 0;
  walk.instruction_shift = build.minor == 10 ? 1 : 0;  // 3.10 counts instructions of two bytes
  walk.code_tag_mask = build.minor >= 14 ? 3 : 0;
  if (build.minor >= 9 && build.minor <= 11) {
    walk.interpreter_runtime = build.minor == 11 ? 40 : 16;
    walk.runtime_current = build.minor == 11 ? 576 : 568;
  }
  walk.code_name = layout.code_name;
  // The hash is the word after the length.
  walk.name_hash = static_cast<uint16_t>(layout.text_length + 8);
  layout.lines = build.minor <= 9    ? PythonLayout::Lines::kDeltas
                 : build.minor == 10 ? PythonLayout::Lines::kRanges
                                     : PythonLayout::Lines::kEntries;
  layout.counts_references = !build.free_threaded;
  // Free-threaded 3.14 has made the field before `kind` a whole byte.
  layout.text_kind_shift = build.free_threaded && build.minor >= 14 ? 8 : 2;

  const unsigned links[] = {layout.code_filename, layout.code_name, layout.code_line_table,
                            layout.code_qualified_name != 0 ? layout.code_qualified_name : layout.code_name};
  const unsigned last = *std::max_element(std::begin(links), std::end(links)) + 8;
  const unsigned first = std::min(*std::min_element(std::begin(links), std::end(links)),
                                  static_cast<unsigned>(layout.code_first_line) & ~7u);
  if (last - first > kCheckBytesMax || first % 8 != 0 || last % 8 != 0 || last > kCodeBytesMax) {
    return Unsupported("the fields of its code objects are too far apart");
  }
  walk.check_first = static_cast<uint16_t>(first);
  walk.check_bytes = static_cast<uint16_t>(last - first);
  layout.code_bytes = static_cast<uint16_t>(last);

  const unsigned frame_ends[] = {walk.frame_back + 8u, walk.frame_code + 8u,
                                 walk.frame_instruction + (walk.instruction_is_pointer != 0 ? 8u : 4u),
                                 walk.frame_owner + 1u, walk.code_copies != 0 ? walk.frame_copy + 4u : 0u};
  if (walk.frame_bytes > kFrameBytesMax ||
      *std::max_element(std::begin(frame_ends), std::end(frame_ends)) > walk.frame_bytes) {
    return Unsupported("its frames are too large");
  }
  // Every object has its type before its own fields: code, str and bytes.
  const unsigned type_end_max = std::min<unsigned>({last, layout.text_length, layout.bytes_size});
  const unsigned aligned[] = {
      walk.frame_back,  walk.frame_code, walk.thread_id,     walk.frame,  walk.code_instructions,
      walk.code_copies, walk.name_hash,  layout.text_length, layout.type, layout.bytes_size};
  if (std::any_of(std::begin(aligned), std::end(aligned), [](unsigned offset) { return offset % 8 != 0; }) ||
      layout.type < 8 || layout.type + 8u > type_end_max || layout.code_first_line + 4u > last ||
      layout.text_ascii > layout.text_compact || layout.text_state + 4u > layout.text_ascii ||
      walk.name_hash + 8u > layout.text_ascii || layout.text_compact > 96 ||
      layout.bytes_data < layout.bytes_size + 8u || layout.bytes_data > 96) {
    return Unsupported("its structures are not as in the sources of its version");
  }
  return layout;
}

// Reads the numbers of _Py_DebugOffsets, which are 64 bits wide. A number above kOffsetMax makes bad() true.
class OffsetReader {
 public:
  explicit OffsetReader(std::string_view bytes) : bytes_(bytes) {}
  uint16_t At(size_t offset) {
    if (offset + 8 > bytes_.size()) {
      bad_ = true;
      return 0;
    }
    auto value = ReadElfStruct<uint64_t>(bytes_, offset);
    bad_ |= value > kOffsetMax;
    return static_cast<uint16_t>(bad_ ? 0 : value);
  }
  bool bad() const { return bad_; }

 private:
  std::string_view bytes_;
  bool bad_ = false;
};

// Offsets of the numbers in _Py_DebugOffsets, for each version. `frame`: of interpreter_frame.size; `code`: of
// code_object.size. Source: CPython's headers pycore_runtime.h (3.13) and pycore_debug_offsets.h, compiled.
struct Description {
  int minor;
  uint16_t current_frame, thread_id, frame, owner, copy_index, code, instructions, copies, type, bytes_size, text_state;
};
constexpr Description kDescriptions[] = {
    {13, 184, 192, 224, 264, 0, 272, 344, 0, 360, 520, 544},
    {14, 208, 216, 248, 288, 304, 312, 384, 392, 408, 600, 624},
    {15, 208, 240, 312, 352, 368, 376, 448, 456, 472, 696, 720},
};

}  // namespace

bool operator==(const PythonLayout& a, const PythonLayout& b) {
  const auto rest = [](const PythonLayout& l) {
    return std::tie(l.type, l.counts_references, l.code_filename, l.code_name, l.code_qualified_name, l.code_line_table,
                    l.code_first_line, l.code_bytes, l.lines, l.text_length, l.text_state, l.text_ascii, l.text_compact,
                    l.text_kind_shift, l.bytes_size, l.bytes_data);
  };
  return std::memcmp(&a.walk, &b.walk, sizeof(a.walk)) == 0 && rest(a) == rest(b);
}

absl::StatusOr<PythonLayout> FixedPythonLayout(const PythonBuild& build) {
  const Version* version = std::find_if(std::begin(kVersions), std::end(kVersions),
                                        [&](const Version& v) { return v.minor == build.minor; });
  if (version == std::end(kVersions) || build.free_threaded) {
    return Unsupported(fmt::format("version 3.{} is not supported", build.minor));
  }
  // The header of every object is longer. Thread states are not objects, and frames only until 3.10.
  const auto object = static_cast<uint16_t>(build.trace_refs ? 16 : 0);
  const uint16_t frame = build.minor <= 10 ? object : 0;
  auto add = [](unsigned a, unsigned b) { return static_cast<uint16_t>(a + b); };
  PythonLayout layout;
  layout.walk.thread_id = version->thread_id;
  layout.walk.frame = version->frame;
  layout.walk.cframe_frame = version->cframe_frame;
  layout.walk.frame_bytes = add(version->frame_bytes, frame);
  layout.walk.frame_back = add(version->frame_back, frame);
  layout.walk.frame_code = add(version->frame_code, frame);
  layout.walk.frame_instruction = add(version->frame_instruction, frame);
  layout.walk.frame_owner = version->frame_owner;
  layout.walk.code_instructions = version->instructions != 0 ? add(version->instructions, object) : 0;
  layout.type = add(8, object);
  layout.code_filename = add(version->filename, object);
  layout.code_name = add(version->name, object);
  layout.code_qualified_name = version->qualified_name != 0 ? add(version->qualified_name, object) : 0;
  layout.code_line_table = add(version->line_table, object);
  layout.code_first_line = add(version->first_line, object);
  layout.text_length = add(16, object);
  layout.text_state = add(32, object);
  layout.text_ascii = add(version->text_ascii, object);
  layout.text_compact = add(version->text_compact, object);
  layout.bytes_size = add(16, object);
  layout.bytes_data = add(32, object);
  return Complete(build, layout);
}

absl::StatusOr<PythonLayout> DescribedPythonLayout(const PythonBuild& build, std::string_view bytes) {
  const Description* d = std::find_if(std::begin(kDescriptions), std::end(kDescriptions),
                                      [&](const Description& v) { return v.minor == build.minor; });
  if (d == std::end(kDescriptions)) return Unsupported(fmt::format("version 3.{} is not supported", build.minor));
  OffsetReader reader(bytes);
  PythonLayout layout;
  layout.walk.frame = reader.At(d->current_frame);
  layout.walk.thread_id = reader.At(d->thread_id);
  // interpreter_frame: size, previous, executable, instr_ptr
  layout.walk.frame_bytes = reader.At(d->frame);
  layout.walk.frame_back = reader.At(d->frame + 8);
  layout.walk.frame_code = reader.At(d->frame + 16);
  layout.walk.frame_instruction = reader.At(d->frame + 24);
  layout.walk.frame_owner = reader.At(d->owner);
  // code_object: size, filename, name, qualname, linetable, firstlineno
  layout.code_filename = reader.At(d->code + 8);
  layout.code_name = reader.At(d->code + 16);
  layout.code_qualified_name = reader.At(d->code + 24);
  layout.code_line_table = reader.At(d->code + 32);
  layout.code_first_line = reader.At(d->code + 40);
  layout.walk.code_instructions = reader.At(d->instructions);
  if (build.free_threaded && d->copies != 0) {
    layout.walk.code_copies = reader.At(d->copies);
    layout.walk.frame_copy = reader.At(d->copy_index);
  }
  layout.type = reader.At(d->type);
  layout.bytes_size = reader.At(d->bytes_size);
  layout.bytes_data = reader.At(d->bytes_size + 8);
  // unicode_object: state, length, asciiobject_size
  layout.text_state = reader.At(d->text_state);
  layout.text_length = reader.At(d->text_state + 8);
  layout.text_ascii = reader.At(d->text_state + 16);
  // PyCompactUnicodeObject adds the length and the pointer of a UTF-8 copy.
  layout.text_compact = static_cast<uint16_t>(layout.text_ascii + 16);
  if (reader.bad() || layout.walk.frame == 0 || layout.walk.thread_id == 0 || layout.code_qualified_name == 0 ||
      layout.walk.code_instructions == 0) {
    return Unsupported("its _Py_DebugOffsets is not as in the sources of its version");
  }
  return Complete(build, layout);
}

}  // namespace tributary
