#include "reducer/ingest/batch_writer.h"

#include <algorithm>

#include "base/status.h"

namespace tributary::ingest {

CommittedBatch Committed(const RowBatch& batch, const store::ShardWriter::Outcome& outcome) {
  CommittedBatch done{.node_id = batch.node->node_id, .generation = batch.generation, .outcome = outcome};
  TRIBUTARY_CHECK(batch.source.kind == SourceKind::kSession && batch.source.id.size() == done.session.size());
  std::copy(batch.source.id.begin(), batch.source.id.end(), done.session.begin());
  return done;
}

}  // namespace tributary::ingest
