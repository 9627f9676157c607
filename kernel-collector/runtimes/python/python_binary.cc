#include "kernel-collector/runtimes/python/python_binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "elf/elf_format.h"
#include "elf/symbol_lookup.h"
#include "kernel-collector/runtimes/python/c_library.h"
#include "kernel-collector/runtimes/python/code_object.h"
#include "kernel-collector/runtimes/python/interpreter_loop.h"
#include "kernel-collector/runtimes/python/python_layout.h"
#include "kernel-collector/runtimes/python/thread_state_access.h"

namespace tributary {
namespace {

// The symbols that are looked up. Every CPython from 3.6 on defines the first one.
enum Symbol : size_t {
  kLoop,
  kRuntime,
  kVersion,
  kCodeType,
  kTextType,
  kBytesType,
  kPrintReferences,
  kSince38,
  kSince39,
  kSince310,
  kGetState312,
  kGetState313,
  kGetCurrentState,
  kSymbolCount,
};
constexpr std::array<std::string_view, kSymbolCount> kNames = {
    "_PyEval_EvalFrameDefault",
    "_PyRuntime",  // since 3.7
    "Py_Version",  // since 3.11
    "PyCode_Type",
    "PyUnicode_Type",
    "PyBytes_Type",
    "_Py_PrintReferences",        // only in builds with Py_TRACE_REFS
    "PyCode_NewWithPosOnlyArgs",  // since 3.8
    "PyFrame_GetCode",            // since 3.9
    "PyIter_Send",                // since 3.10
    "_PyThreadState_UncheckedGet",
    "PyThreadState_GetUnchecked",
    "_PyThreadState_GetCurrent",
};
using Symbols = std::vector<std::optional<SymbolPlace>>;

absl::Status Unsupported(std::string_view path, std::string_view why) {
  return Error(absl::StatusCode::kUnimplemented, fmt::format("{}: CPython: {}", path, why));
}

class PythonBinary : public RuntimeBinary {
 public:
  absl::StatusOr<std::shared_ptr<const RuntimeFunction>> ReadFunction(ProcessMemory& memory, const CodeObject& object,
                                                                      uint64_t bias) const override {
    const auto in_process = [bias](uint64_t address) { return address != 0 ? address + bias : 0; };
    return ReadPythonFunction(
        layout_of_objects, {in_process(types.code), in_process(types.text), in_process(types.bytes)}, memory, object);
  }

  bool ReadsFunctionsLike(const RuntimeBinary& other) const override {
    const auto* binary = dynamic_cast<const PythonBinary*>(&other);
    return binary != nullptr && binary->layout_of_objects == layout_of_objects && binary->types == types;
  }

  PythonLayout layout_of_objects;
  PythonTypes types;  // ELF addresses
};

// Other executables may have the interpreter linked in, beside their own code.
bool IsOnlyInterpreter(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.starts_with("python") || (path.starts_with("libpython") && path.find(".so") != path.npos);
}

// Reads up to `size` bytes at an ELF address. Returns fewer if the file has no more bytes there.
std::string BytesAt(const ElfFile& file, uint64_t address, size_t size) {
  for (const ElfSegment& segment : file.segments()) {
    if (address < segment.address || address - segment.address >= segment.file_size) continue;
    const uint64_t offset = address - segment.address;
    std::string bytes(std::min<uint64_t>(size, segment.file_size - offset), '\0');
    if (file.ReadAt(segment.file_offset + offset, bytes.size(), bytes.data()).ok()) return bytes;
  }
  return {};
}

// A version as Python writes it in a number: major, minor and micro version, then the level and number of a release
// candidate. Source: Include/patchlevel.h.
struct Version {
  uint32_t hex = 0;
  unsigned major() const { return hex >> 24; }
  unsigned minor() const { return hex >> 16 & 0xff; }
  std::string Text() const {
    const unsigned level = hex >> 4 & 15;
    std::string text = fmt::format("{}.{}.{}", major(), minor(), hex >> 8 & 0xff);
    if (level != 0xf) text += fmt::format("{}{}", level == 0xa ? "a" : level == 0xb ? "b" : "rc", hex & 15);
    return text;
  }
  // Structures change until the first release candidate.
  bool is_final() const { return (hex >> 4 & 15) >= 0xc; }
};

// Recognises one file.
class Recogniser {
 public:
  Recogniser(ElfFile& file, std::string_view path) : file_(file), path_(path) {}

  absl::StatusOr<RuntimeBinaryPtr> Run() {
    ASSIGN_OR_RETURN(symbols_, LookUpSymbols(file_, kNames));
    if (!symbols_[kLoop]) return NoLoop();
    auto binary = std::make_shared<PythonBinary>();
    RETURN_IF_ERROR(ReadBuild());
    RETURN_IF_ERROR(ReadLayout(&binary->layout_of_objects));
    ASSIGN_OR_RETURN(binary->loops, FindInterpreterLoop(file_, *symbols_[kLoop]));
    binary->types = {AddressOf(kCodeType), AddressOf(kTextType), AddressOf(kBytesType)};
    binary->name = "python";
    binary->version = version_text_ + (build_.free_threaded ? "t" : "");
    binary->kind = FrameKind::kPython;
    binary->is_only_interpreter = IsOnlyInterpreter(path_);
    binary->layout.kind = TRIB_RUNTIME_PYTHON;
    binary->layout.python = binary->layout_of_objects.walk;
    binary->layout.python.tls_state = ThreadStateOffset();
    return RuntimeBinaryPtr(std::move(binary));
  }

 private:
  uint64_t AddressOf(Symbol symbol) const { return symbols_[symbol] ? symbols_[symbol]->address : 0; }

  // The section .PyRuntime survives a strip, the symbols of a program that exports none do not.
  absl::StatusOr<RuntimeBinaryPtr> NoLoop() {
    ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file_.Sections());
    bool is_python = std::any_of(sections->begin(), sections->end(),
                                 [](const ElfSection& section) { return section.name == ".PyRuntime"; });
    if (is_python) return Unsupported(path_, "the symbol of its interpreter's loop was removed");
    return RuntimeBinaryPtr();
  }

  absl::Status ReadBuild() {
    ASSIGN_OR_RETURN(build_.musl, UsesMusl(file_));
    build_.trace_refs = symbols_[kPrintReferences].has_value();
    Version version;
    if (symbols_[kRuntime]) description_ = BytesAt(file_, AddressOf(kRuntime), kPythonDebugOffsetsBytes);
    const bool describes_itself = description_.size() >= 24 && description_.compare(0, 8, kPythonDebugCookie) == 0;
    if (describes_itself) {
      version.hex = static_cast<uint32_t>(ReadElfStruct<uint64_t>(description_, 8));
      const auto free_threaded = ReadElfStruct<uint64_t>(description_, 16);
      if (free_threaded > 1) return Unsupported(path_, "its _Py_DebugOffsets is malformed");
      build_.free_threaded = free_threaded != 0;
    }
    if (symbols_[kVersion]) {
      const std::string bytes = BytesAt(file_, AddressOf(kVersion), sizeof(uint32_t));
      if (bytes.size() < sizeof(uint32_t)) return Unsupported(path_, "its version cannot be read");
      const Version stated{ReadElfStruct<uint32_t>(bytes, 0)};
      if (describes_itself && stated.hex != version.hex) return Unsupported(path_, "it states two versions");
      version = stated;
    }
    if (version.hex == 0) return UseSymbolsOfVersions();
    version_text_ = version.Text();
    build_.minor = static_cast<int>(version.minor());
    if (version.major() != 3 || !version.is_final() || build_.minor > PythonLayout::kMinorMax ||
        (build_.minor >= 13 && !describes_itself)) {
      return Unsupported(path_, fmt::format("version {} is not supported", version_text_));
    }
    return absl::OkStatus();
  }

  // Until 3.10, no number in the file states the version. The names of the file and of its directories may be of any
  // text, so the version is known by the functions that it has added.
  absl::Status UseSymbolsOfVersions() {
    build_.minor = symbols_[kSince310]  ? 10
                   : symbols_[kSince39] ? 9
                   : symbols_[kSince38] ? 8
                   : symbols_[kRuntime] ? 7
                                        : 6;
    version_text_ = fmt::format("3.{}", build_.minor);
    return absl::OkStatus();
  }

  absl::Status ReadLayout(PythonLayout* layout) {
    auto read = build_.minor >= 13 ? DescribedPythonLayout(build_, description_) : FixedPythonLayout(build_);
    if (!read.ok()) return WithContext(read.status(), path_);
    *layout = *read;
    return absl::OkStatus();
  }

  int64_t ThreadStateOffset() const {
    for (Symbol symbol : {kGetCurrentState, kGetState313, kGetState312}) {
      if (build_.minor < 12 || !symbols_[symbol]) continue;
      const std::string code = BytesAt(file_, AddressOf(symbol), kThreadStateAccessBytes);
      if (int64_t offset = DecodeThreadStateAccess(file_.machine(), code); offset != 0) return offset;
    }
    return 0;
  }

  ElfFile& file_;
  const std::string_view path_;
  Symbols symbols_;
  std::string description_;  // _Py_DebugOffsets
  PythonBuild build_;
  std::string version_text_;
};

}  // namespace

absl::StatusOr<RuntimeBinaryPtr> ReadPythonBinary(ElfFile& file, std::string_view path) {
  return Recogniser(file, path).Run();
}

}  // namespace tributary
