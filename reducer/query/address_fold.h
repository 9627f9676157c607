#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "reducer/query/frame_namer.h"
#include "reducer/query/function_trie.h"
#include "reducer/query/query_context.h"
#include "reducer/store/store.h"

namespace tributary {

// Computes one shard's part of a flame graph. Scan adds the values of the selected samples to the nodes of the shard's
// address tries, one trie per day. MapInto then adds these nodes to the query's trie of functions. Scan uses 16 bytes
// of memory per trie node. MapInto uses about 5 more bytes per node and 13 per frame, for one day at a time; with
// frames of interpreters, 9 per node.
// docs/data-model.md describes the tries, and `dev/bench symbols` measures the time. Use an object for one query, on
// one thread.
class AddressFold {
 public:
  AddressFold(store::StoreReader& reader, const QueryContext& context) : reader_(reader), context_(context) {}

  absl::Status Scan();
  absl::Status MapInto(FrameNamer& namer, FunctionTrie* functions);

  struct DayNodes {
    store::TrieView trie;
    std::vector<uint64_t> values, counts;  // index: NodeNo
  };
  const std::map<store::Day, DayNodes>& days() const { return days_; }
  // Returns 1 for each node of a day that has a value or a descendant with a value, and 0 for other nodes, which can be
  // skipped.
  static absl::StatusOr<std::vector<uint8_t>> FindUsedNodes(const DayNodes& nodes, const QueryRequest& request);

 private:
  absl::StatusOr<DayNodes*> FindDay(store::Day day);
  absl::Status Average();
  absl::Status AddRow(DayNodes& nodes, store::NodeNo node, uint64_t value, uint64_t count);
  // Names the frame rows of all nodes for which `used` is 1. Writes the names to `chains`, by frame row.
  absl::Status NameRows(const store::TrieView& trie, const std::vector<uint8_t>& used,
                        const std::vector<uint32_t>& executables, FrameNamer& namer,
                        std::vector<FrameNamer::Chain>* chains);
  // Writes to `shown` which forms of the nodes are shown: see MapDay.
  absl::Status ChooseForms(const DayNodes& nodes, const FrameNamer& namer, std::span<const FrameNamer::Chain> chains,
                           std::vector<uint8_t>* shown) const;
  absl::StatusOr<FunctionNode> Extend(FunctionNode parent, std::span<const FunctionNo> chain,
                                      FunctionTrie* functions) const;
  absl::Status MapDay(const DayNodes& nodes, const std::vector<uint32_t>& executables, FrameNamer& namer,
                      FunctionTrie* functions);

  store::StoreReader& reader_;
  const QueryContext& context_;
  std::map<store::Day, DayNodes> days_;
  absl::flat_hash_set<store::StringId> own_names_;  // that own_name_bytes_ contains; a day or a line may repeat a name
  size_t node_count_ = 0, own_name_bytes_ = 0;
};

}  // namespace tributary
