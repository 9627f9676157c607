#include "reducer/ingest/shard.h"

#include <fmt/format.h>
#include <pthread.h>

#include <future>
#include <utility>

#include "base/status.h"

namespace tributary::ingest {
namespace {

SymbolWorker::Options SymbolOptions(const Shard::Options& options) {
  SymbolWorker::Options of_worker = options.symbols;
  of_worker.shard = options.number;
  return of_worker;
}

WriterThread::Options WriterOptions(const Shard::Options& options) {
  WriterThread::Options of_writer = options.writer;
  of_writer.refusals = options.server.refusals;
  return of_writer;
}

}  // namespace

Shard::Shard(Options options, std::unique_ptr<store::ShardWriter> writer, SymbolStore& symbols, const Clock& clock,
             Metrics& metrics)
    : number_(options.number),
      symbol_worker_(loop_, symbols, SymbolOptions(options), metrics),
      writer_(fmt::format("store shard={}", options.number), std::move(writer), WriterOptions(options),
              {.committed =
                   [this](std::vector<CommittedBatch> done) {
                     loop_.Post([this, done = std::move(done)] { core_->OnCommitted(done); });
                   },
               .found =
                   [this](const SessionId& id, absl::StatusOr<uint64_t> durable) {
                     loop_.Post([this, id, durable = std::move(durable)] { core_->OnFound(id, durable); });
                   }},
              clock, metrics),
      core_(std::make_unique<ShardCore>(
          ShardCore::Dependencies{
              .alarms = loop_, .writer = writer_, .symbols = symbol_worker_, .clock = clock, .metrics = metrics},
          ShardCore::Options{.server = options.server,
                             .queue = {options.writer.queue_bytes_max, options.writer.queue_batches_max},
                             .old_days = options.old_days,
                             .sessions_remembered_max = options.sessions_remembered_max,
                             .session_memory_bytes_max = options.session_memory_bytes_max,
                             .tick_ms = options.tick_ms,
                             .metadata = options.metadata,
                             .opt_outs = options.opt_outs},
          ShardCore::Callbacks{
              .connected = [this](const std::string& id) { CountConnected(id, 1); },
              .disconnected = [this](const std::string& id) { CountConnected(id, -1); },
              .closed = [this] { loop_.Stop(); },
          })) {}

Shard::~Shard() { Stop(); }

void Shard::Start() {
  started_ = true;
  core_->Start();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), fmt::format("shard {}", number_).c_str());  // the name that top -H shows
    loop_.Run();
  });
}

void Shard::Drain() {
  if (std::exchange(drained_, true)) return;
  if (started_) {
    std::promise<void> no_more;
    loop_.Post([&] {
      core_->TakeNoMore();
      no_more.set_value();
    });
    no_more.get_future().wait();
  }
  writer_.Stop();
  symbol_worker_.Stop();
}

void Shard::Stop() {
  Drain();
  if (!std::exchange(started_, false)) return;
  loop_.Post([this] { core_->CloseAll(); });  // after the writer's last acknowledgements
  thread_.join();
  core_.reset();
}

void Shard::Accept(intake::PendingSession session) {
  // A task is copied, but the socket cannot be.
  auto shared = std::make_shared<intake::PendingSession>(std::move(session));
  loop_.Post([this, shared] { StartSession(std::move(*shared)); });
}

void Shard::StartSession(intake::PendingSession pending) {
  absl::StatusOr<std::unique_ptr<Stream>> stream = pending.stream->Adopt(loop_);
  if (!stream.ok()) return;  // the connection broke on the way
  core_->Accept({*std::move(stream), std::move(pending.hello), std::move(pending.rest), std::move(pending.peer_id)});
}

void Shard::CountConnected(const std::string& node_id, int change) {
  std::lock_guard lock(connected_mutex_);
  auto it = connected_.try_emplace(node_id, 0).first;
  if ((it->second += change) <= 0) connected_.erase(it);
}

bool Shard::IsConnected(std::string_view node_id) const {
  std::lock_guard lock(connected_mutex_);
  return connected_.contains(ToAbsl(node_id));
}

}  // namespace tributary::ingest
