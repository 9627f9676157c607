#include "reducer/ingest/symbol_worker.h"

#include <memory>

#include "base/log.h"
#include "base/status.h"

namespace tributary::ingest {
namespace {

SymbolSender SenderOf(const SymbolNode& node) {
  return {.node_id = node.node_id, .version = node.version, .peer_id = node.peer_id};
}

}  // namespace

SymbolWorker::SymbolWorker(Loop& loop, SymbolStore& symbols, Options options, Metrics& metrics)
    : loop_(loop),
      symbols_(symbols),
      options_(options),
      dropped_(metrics.AddCounter("tributary_reducer_symbol_uploads_dropped_total",
                                  "Symbol tables from nodes, and answers that a node has no table, that were dropped, "
                                  "because too many were waiting to be stored; the tables are requested again")),
      queue_(options.queue_max),
      thread_([this] { Run(); }) {}

SymbolWorker::~SymbolWorker() { Stop(); }

void SymbolWorker::Stop() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

void SymbolWorker::Run() {
  while (std::optional<std::function<void()>> job = queue_.Pop()) (*job)();
}

SymbolAsker SymbolWorker::AskerOf(uint64_t asker) const { return SymbolAsker{uint64_t{options_.shard} << 48 | asker}; }

bool SymbolWorker::TryChoose(const SymbolNode& node, std::vector<ExecutableId> candidates, size_t ask_max,
                             Reply reply) {
  return queue_.TryPush([this, node, candidates = std::move(candidates), ask_max, reply = std::move(reply)] {
    Choice choice;
    while (choice.considered < candidates.size() && choice.tables.size() + choice.digests.size() < ask_max) {
      const ExecutableId& id = candidates[choice.considered++];
      const SymbolAsk ask = symbols_.WhatToAsk(id, AskerOf(node.connection),
                                               {.node_id = node.node_id, .peer_id = node.peer_id}, node.sends_digests);
      if (ask == SymbolAsk::kTable) choice.tables.push_back(id);
      if (ask == SymbolAsk::kDigest) choice.digests.push_back(id);
    }
    loop_.Post([reply, choice = std::move(choice)] { reply(choice); });
  });
}

void SymbolWorker::Take(const SymbolNode& node, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) {
  const size_t bytes = encoded_table.ok() ? encoded_table->size() : 0;
  // One table is always accepted, however large.
  if (queued_bytes_.load() > 0 && queued_bytes_.load() + bytes > options_.queue_bytes_max) {
    return Drop(id);
  }
  queued_bytes_.fetch_add(bytes);
  // std::function copies its captures.
  auto table = std::make_shared<absl::StatusOr<std::string>>(std::move(encoded_table));
  if (!queue_.TryPush([this, node, id, table, bytes] {
        Put(node, id, *table);
        queued_bytes_.fetch_sub(bytes);
      })) {
    queued_bytes_.fetch_sub(bytes);
    Drop(id);
  }
}

void SymbolWorker::TakeDigest(const SymbolNode& node, const ExecutableId& id,
                              const absl::StatusOr<SymbolDigest>& digest) {
  // If the queue is full, another node is asked later.
  if (!queue_.TryPush([this, node, id, digest] { symbols_.PutDigest(id, SenderOf(node), digest); })) {
    dropped_.Add();
  }
}

void SymbolWorker::Drop(const ExecutableId& id) {
  dropped_.Add();
  symbols_.demand().Defer(id);
}

void SymbolWorker::Progress(uint64_t asker) { symbols_.demand().Progress(AskerOf(asker)); }

void SymbolWorker::Release(uint64_t asker) {
  (void)queue_.TryPush([this, asker = AskerOf(asker)] { symbols_.demand().Release(asker); });
}

std::vector<ExecutableId> SymbolWorker::TakeReleased() { return symbols_.demand().ReleasedSince(released_seen_); }

void SymbolWorker::Put(const SymbolNode& node, const ExecutableId& id,
                       const absl::StatusOr<std::string>& encoded_table) {
  if (encoded_table.status().code() == absl::StatusCode::kDataLoss) {
    LogInfo("symbol table is requested again executable={} cause=\"{}\"", id.ToString(),
            EscapeForDisplay(Message(encoded_table.status())));
    return symbols_.demand().Release(id, AskerOf(node.connection));
  }
  if (!encoded_table.ok()) {
    symbols_.PutUnavailable(id, Message(encoded_table.status()));
    return;
  }
  const auto kept = symbols_.Put(id, *encoded_table, SymbolOrigin::kNode, SenderOf(node));
  if (kept.ok()) return;
  LogDebug("a symbol table was refused executable={} node={} cause=\"{}\"", id.ToString(),
           EscapeForDisplay(node.node_id), Message(kept.status()));
  // If there is no space, the store has decided when the table may be requested again.
  if (!absl::IsResourceExhausted(kept.status())) symbols_.demand().Defer(id);
}

}  // namespace tributary::ingest
