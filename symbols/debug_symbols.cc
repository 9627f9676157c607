#include "symbols/debug_symbols.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "dwarf/split_index.h"
#include "elf/elf_format.h"
#include "elf/module_layout.h"
#include "symbols/elf_symbols.h"
#include "symbols/go_pclntab.h"
#include "symbols/kernel_file.h"
#include "symbols/symbol_builder.h"

namespace tributary {
namespace {

constexpr uint64_t kLinkBytesMax = 64u << 10;

class BuilderSink : public DwarfSink {
 public:
  // `go`: range of Go's functions; empty if there are none.
  BuilderSink(SymbolTableBuilder& builder, AddressRange go) : builder_(builder), go_(go) {}

  bool has_go_code() const { return has_go_code_; }

  uint32_t AddString(std::string_view text) override { return builder_.AddString(text); }
  uint32_t AddNode(uint32_t name, uint32_t parent, uint32_t call_file, uint32_t call_line) override {
    return builder_.AddNode(name, parent, call_file, call_line);
  }
  void AddCode(AddressRange range, uint32_t depth, uint32_t node) override {
    has_go_code_ |= range.begin >= go_.begin && range.begin < go_.end;
    builder_.AddCode(range.begin, range.end, depth, node, SymbolTableBuilder::Layer::kDebugInfo);
  }
  void AddLines(std::span<const DwarfLine> rows, uint64_t end) override {
    lines_.clear();
    for (const DwarfLine& row : rows) lines_.push_back({row.address, row.file, row.line});
    builder_.AddLines(lines_, end);
  }

 private:
  SymbolTableBuilder& builder_;
  const AddressRange go_;
  bool has_go_code_ = false;
  std::vector<SymbolLine> lines_;
};

// Returns the ranges of code. Sections are more precise than segments: a segment may begin with the file's headers at
// address 0, where a linker places the functions that it dropped. For a kernel, only sections that overlap the window.
absl::StatusOr<std::vector<AddressRange>> CodeOf(ElfFile& file, AddressRange window) {
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  if (file.type() == kElfTypeRelocatable) return std::vector<AddressRange>{ModuleLayout(*sections).code()};
  std::vector<AddressRange> code;
  for (const ElfSection& section : *sections) {
    if ((section.flags & kElfSectionExecutable) == 0 || section.size > UINT64_MAX - section.address) continue;
    const AddressRange range = {section.address, section.address + section.size};
    if (range.begin < window.end && range.end > window.begin) code.push_back(range);
  }
  if (!code.empty()) return code;
  for (const ElfSegment& segment : file.segments()) {
    if (!segment.executable || segment.memory_size > UINT64_MAX - segment.address) continue;
    code.push_back({segment.address, segment.address + segment.memory_size});
  }
  return code;
}

// A file with its DWARF. Both must live until everything was read.
struct Loaded {
  std::unique_ptr<ElfFile> file;
  std::optional<DwarfSectionStore> sections;
  std::unique_ptr<DwarfModule> module;
};

class Reader {
 public:
  Reader(ElfFile& file, AddressRange window, const DebugFileSource& source, uint64_t bytes_max)
      : file_(file), window_(window), source_(source), bytes_max_(bytes_max) {}

  absl::Status Read(BuilderSink& sink, DwarfFunctions::Counts* counts) {
    ASSIGN_OR_RETURN(const DwarfSectionStore sections, DwarfSectionStore::Read(file_, bytes_max_));
    ASSIGN_OR_RETURN(const std::vector<AddressRange> code, CodeOf(file_, window_));
    OpenShared();
    ASSIGN_OR_RETURN(const std::unique_ptr<DwarfModule> module,
                     DwarfModule::Open(sections.sections(), shared_.module.get(), nullptr));
    main_ = &sections.sections();
    DwarfFunctions functions(code, sink);
    functions.Read(*module, [this](const DwarfUnit& skeleton) { return Split(skeleton); });
    *counts = functions.counts();
    return absl::OkStatus();
  }

 private:
  // .gnu_debugaltlink contains a path and a build-id.
  void OpenShared() {
    auto sections = file_.Sections();
    if (!sections.ok() || !source_.shared) return;
    for (const ElfSection& section : **sections) {
      if (section.name != ".gnu_debugaltlink") continue;
      absl::StatusOr<std::string> link = file_.SectionBytes(section, kLinkBytesMax);
      const size_t path_bytes = link.ok() ? link->find('\0') : std::string::npos;
      if (path_bytes == std::string::npos) return;
      const std::string_view all = *link;
      Load(source_.shared(all.substr(0, path_bytes), all.substr(path_bytes + 1)), nullptr, &shared_);
      return;
    }
  }

  void Load(DebugFileSource::File file, const DwarfUnit* skeleton, Loaded* out) {
    if (!file.ok()) return;
    absl::StatusOr<DwarfSectionStore> sections = DwarfSectionStore::Read(**file, bytes_max_);
    if (!sections.ok()) return;
    out->file = *std::move(file);
    out->sections = *std::move(sections);
    DwarfSections of = out->sections->sections();
    if (of.cu_index.empty()) out->module = OpenModule(of, skeleton);
  }

  std::unique_ptr<DwarfModule> OpenModule(DwarfSections sections, const DwarfUnit* skeleton) {
    if (skeleton != nullptr) {
      sections.addr = main_->addr;
      sections.ranges = main_->ranges;
    }
    auto module = DwarfModule::Open(sections, shared_.module.get(), skeleton);
    return module.ok() ? *std::move(module) : nullptr;
  }

  DwarfModule* Split(const DwarfUnit& skeleton) {
    if (!std::exchange(package_tried_, true) && source_.package) {
      Load(source_.package(), nullptr, &package_);
      if (package_.sections) index_ = SplitIndex::Read(package_.sections->sections());
    }
    if (index_) {
      if (const std::optional<DwarfSections> sections = index_->Find(skeleton.dwo_id)) {
        split_ = Loaded();
        split_.module = OpenModule(*sections, &skeleton);
        return split_.module.get();
      }
    }
    split_ = Loaded();
    if (!source_.split) return nullptr;
    Load(source_.split(skeleton.comp_dir, skeleton.dwo_name), &skeleton, &split_);
    const bool is_its = split_.module != nullptr && split_.module->units().front().dwo_id == skeleton.dwo_id;
    return is_its ? split_.module.get() : nullptr;
  }

  ElfFile& file_;
  const AddressRange window_;
  const DebugFileSource& source_;
  const uint64_t bytes_max_;
  const DwarfSections* main_ = nullptr;
  Loaded shared_, package_;
  Loaded split_;  // of the current unit
  bool package_tried_ = false;
  std::optional<SplitIndex> index_;
};

}  // namespace

absl::StatusOr<DebugSymbols> ReadDebugSymbols(ElfFile& file, const ExecutableId& id, const DebugFileSource& source,
                                              uint64_t bytes_max) {
  ASSIGN_OR_RETURN(const AddressRange window, FindSampledWindow(file));
  SymbolTableBuilder builder(window);
  DebugSymbols out;
  absl::StatusOr<SymbolSource> source_of_names = AddElfSymbols(file, builder, bytes_max);
  if (!source_of_names.ok() && !absl::IsNotFound(source_of_names.status())) return source_of_names.status();
  const absl::StatusOr<GoPclntab> go = GoPclntab::Open(file);
  BuilderSink sink(builder, go.ok() ? go->code() : AddressRange());
  const absl::Status dwarf = Reader(file, window, source, bytes_max).Read(sink, &out.counts);
  if (!dwarf.ok() && !absl::IsNotFound(dwarf)) return dwarf;
  if (dwarf.ok()) source_of_names = SymbolSource::kDwarf;
  if (go.ok()) builder.AddCodeKind(go->code(), FrameKind::kGo);
  // A Go program linked without debug information may still have debug information of its C code.
  if (go.ok() && !sink.has_go_code()) {
    ASSIGN_OR_RETURN(out.go, go->AddTo(builder));
    source_of_names = SymbolSource::kPclntab;
  }
  RETURN_IF_ERROR(source_of_names.status());
  out.table = builder.Build(id, *source_of_names);
  out.left_out = builder.left_out();
  return out;
}

absl::StatusOr<ExecutableId> IdentityForSymbols(ElfFile& file, const ExecutableId& claimed) {
  const bool is_module = IsKernelModule(file);
  if (file.type() == kElfTypeRelocatable && !is_module) {
    return Error(absl::StatusCode::kNotFound, "the file is an object file (.o): give the linked executable or library");
  }
  ASSIGN_OR_RETURN(const ExecutableId own, file.Identity());
  const ExecutableId id = claimed.known() ? claimed : own;
  if (own != id && own.kind() != ExecutableIdKind::kContentHash) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("the file has the id {}, but the id {} was expected", own.ToString(), id.ToString()));
  }
  if ((is_module || IsKernel(file)) && id.kind() != ExecutableIdKind::kGnuBuildId) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "the file is a kernel or kernel module without a build-id: its samples cannot be distinguished from "
                 "samples of other kernels");
  }
  return id;
}

}  // namespace tributary
