#include "reducer/query/flame_graph.h"

#include <memory>

#include "base/status.h"
#include "reducer/query/address_fold.h"
#include "reducer/query/frame_namer.h"
#include "reducer/query/function_trie.h"
#include "reducer/query/query_context.h"

namespace tributary {
namespace {

absl::Status FoldInto(const QueryContext& context, FunctionTrie* trie) {
  FrameNamer namer(context.symbols.lookup(), context.demangled, context.request, *trie);
  using Fold = std::unique_ptr<AddressFold>;
  return ForEachShardPart<Fold>(
      context,
      [](store::StoreReader& reader, const QueryContext& of_thread) -> absl::StatusOr<Fold> {
        auto fold = std::make_unique<AddressFold>(reader, of_thread);
        RETURN_IF_ERROR(fold->Scan());
        return fold;
      },
      [&](store::StoreReader&, Fold fold) { return fold->MapInto(namer, trie); });
}

}  // namespace

absl::StatusOr<FlameGraph> MakeFlameGraph(const QueryContext& context, size_t nodes_max) {
  FunctionTrie trie(context.limits.function_nodes_max);
  RETURN_IF_ERROR(FoldInto(context, &trie));
  return trie.ToFlameGraph(nodes_max, context.request);
}

absl::StatusOr<std::vector<TopFunction>> MakeTop(const QueryContext& context, size_t limit, uint64_t* total_value,
                                                 uint64_t* total_count) {
  FunctionTrie trie(context.limits.function_nodes_max);
  RETURN_IF_ERROR(FoldInto(context, &trie));
  *total_value = trie.TotalValue();
  *total_count = trie.TotalCount();
  return trie.Top(limit, context.request);
}

}  // namespace tributary
