#include "reducer/profile_metrics/frame_labels.h"

#include <span>
#include <string_view>

#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/profile_metrics/process_labels.h"
#include "reducer/query/frame_namer.h"

namespace tributary {
namespace {

// Makes the labels of frames of one shard.
class Maker {
 public:
  Maker(store::StoreReader& reader, FrameLabels::Wanted wanted, const FrameLabels::Sources& sources)
      : reader_(&reader), wanted_(wanted), names_(&sources.names), symbolizer_(sources.symbols) {}

  absl::StatusOr<FrameLabels::Labels> LabelsOf(const store::FrameRow& row) {
    // A shard may have many executables, and few are in the samples of a second.
    const auto [known, is_new] = executables_.try_emplace(row.executable.value);
    if (is_new) {
      ASSIGN_OR_RETURN(known->second, reader_->Executable(row.executable));
    }
    const store::ExecutableRow& file = known->second;
    FrameSymbolizer::Place place{.kind = row.kind};
    // Only a symbol table shows that native code is Go.
    if (wanted_.language || wanted_.function) place = symbolizer_.Find(row, file.id);
    FrameLabels::Labels labels;
    if (wanted_.language) labels.language = RowOf(place.kind).language;
    if (wanted_.library) labels.library = LibraryOf(file, place.kind);
    if (wanted_.function) {
      ASSIGN_OR_RETURN(labels.function, FunctionOf(row, place));
    }
    return labels;
  }

 private:
  static std::string LibraryOf(const store::ExecutableRow& file, FrameKind kind) {
    const std::string_view name = BaseName(file.path);
    if (!name.empty()) return MetricLabelValue(name);
    return std::string(RowOf(kind).naming == FrameNaming::kKernel ? kKernelName : kUnknownName);
  }

  absl::StatusOr<std::string> FunctionOf(const store::FrameRow& row, const FrameSymbolizer::Place& place) {
    std::string_view own_name;
    if (row.name.value != 0) {
      ASSIGN_OR_RETURN(const std::string_view text, reader_->Text(row.name));
      own_name = FrameSymbolizer::OwnName(text);
    }
    std::string_view name;
    FrameSymbolizer::ForEachFrame(place, row, own_name, "", [&name](const SymbolTable::Frame& frame) {
      name = frame.name;
      return false;  // the first one is the innermost one; without a name, its caller's name would be wrong
    });
    if (name.empty()) return std::string(kUnknownName);
    if (!own_name.empty()) return MetricLabelValue(own_name);
    // A table contains each name once, and is kept alive. So the address of the bytes identifies the name.
    const auto [demangled, is_new] = demangled_.try_emplace(name.data());
    if (is_new) demangled->second = MetricLabelValue(names_->Demangle(name));
    return demangled->second;
  }

  store::StoreReader* reader_;
  FrameLabels::Wanted wanted_;
  DemangleCache* names_;
  FrameSymbolizer symbolizer_;
  absl::flat_hash_map<uint32_t, store::ExecutableRow> executables_;  // by number
  absl::flat_hash_map<const char*, std::string> demangled_;
};

}  // namespace

const std::string& FrameLabels::Labels::Of(MetricLabel::Of label) const {
  switch (label) {
    case MetricLabel::Of::kLanguage:
      return language;
    case MetricLabel::Of::kFunction:
      return function;
    case MetricLabel::Of::kLibrary:
    case MetricLabel::Of::kAttribute:
      break;
  }
  return library;
}

absl::StatusOr<FrameLabels> FrameLabels::Read(store::StoreReader& reader, const Leaves& leaves, Wanted wanted,
                                              const Sources& sources) {
  FrameLabels labels;
  labels.labels_.push_back({.language = std::string(RowOf(FrameKind::kUnknown).language),
                            .function = std::string(kUnknownName),
                            .library = std::string(kUnknownName)});
  Maker maker(reader, wanted, sources);
  for (const auto& [day, nodes] : leaves) {
    const absl::StatusOr<store::TrieView> trie = reader.LoadTrie(day);
    if (absl::IsNotFound(trie.status())) continue;
    RETURN_IF_ERROR(trie.status());
    absl::flat_hash_map<uint32_t, uint32_t> by_frame;  // index of the trie's frame_rows → index of labels_
    for (const store::NodeNo node : nodes) {
      const uint32_t frame = node.value < trie->frames.size() ? trie->frames[node.value] : 0;
      if (frame == 0) continue;  // an empty stack
      const auto [index, is_new] = by_frame.try_emplace(frame, static_cast<uint32_t>(labels.labels_.size()));
      if (is_new) {
        // The first frame of a file may read and decode its symbols.
        if (sources.is_cancelled()) return absl::CancelledError("the reducer stops");
        ASSIGN_OR_RETURN(Labels found, maker.LabelsOf(trie->frame_rows[frame]));
        labels.labels_.push_back(std::move(found));
      }
      labels.by_leaf_.emplace(std::pair(day, node), index->second);
    }
  }
  return labels;
}

const FrameLabels::Labels& FrameLabels::Of(store::Day day, store::NodeNo leaf) const {
  const auto found = by_leaf_.find({day, leaf});
  return labels_[found == by_leaf_.end() ? 0 : found->second];
}

}  // namespace tributary
