#include "reducer/ingest/shard_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "profile/named_code.h"

namespace tributary::ingest {
namespace {

constexpr uint64_t kCloseMs = 1'500;  // time for collectors to read the last acknowledgements and Goodbye
constexpr size_t kNodeIdBytesMax = 255;
constexpr uint64_t kMetadataRetryMs = 20;

}  // namespace

ShardCore::ShardCore(const Dependencies& dependencies, Options options, Callbacks callbacks)
    : alarms_(dependencies.alarms),
      options_(std::move(options)),
      writer_(dependencies.writer),
      symbols_(dependencies.symbols),
      clock_(dependencies.clock),
      metrics_(dependencies.metrics),
      callbacks_(std::move(callbacks)),
      held_back_(metrics_.AddCounter(
          "tributary_reducer_held_back_total",
          "Times that a batch did not fit into the queue of the store writer, because the whole queue was full; "
          "reading from the collector pauses meanwhile")),
      over_share_(metrics_.AddCounter("tributary_reducer_over_share_total",
                                      "Times that a batch would have exceeded its node's share of the store writer's "
                                      "queue; reading from the collector pauses meanwhile")),
      over_old_days_(metrics_.AddCounter(
          "tributary_reducer_old_days_total",
          "Times that a batch waited, because its node already used --intake-node-old-days days older than "
          "--retention-raw, or because other days before yesterday had their turn; reading from the collector pauses "
          "meanwhile")),
      memory_(options_.sessions_remembered_max, options_.session_memory_bytes_max, metrics_, options_.server.refusals),
      share_(options_.queue),
      old_days_(options_.old_days),
      tick_(alarms_.NewAlarm([this] { OnTick(); })),
      closing_(alarms_.NewAlarm([this] {
        if (callbacks_.closed) callbacks_.closed();
      })),
      metadata_retry_(alarms_.NewAlarm([this] { RetryMetadata(); })) {}

ShardCore::~ShardCore() = default;

void ShardCore::Start() { tick_->StartEvery(options_.tick_ms); }

void ShardCore::TakeNoMore() { stopping_ = true; }

void ShardCore::CloseAll() {
  stopping_ = closing_all_ = true;
  tick_->Stop();
  looked_up_.clear();
  for (auto& [id, live] : live_) live.session->Close({.reason = "the reducer is stopping", .retry = true});
  closing_->StartOnce(live_.empty() ? 0 : kCloseMs);
}

// Looks up a session's mark after its queued batches, even if the session is remembered. Otherwise a batch that is
// still with the writer could become durable after Welcome has said that it is not. Until the answer comes, the
// collector receives nothing.
void ShardCore::Accept(Arrival arrival) {
  if (stopping_) return;
  const SessionId id = arrival.hello.session.session_id;
  if (ended_.Contains(arrival.hello.session.node_id, id)) return;
  if (auto it = live_.find(id); it != live_.end()) {
    // The collector has given up the old connection, but the reducer has not noticed yet.
    Disconnect(it->second);
    live_.erase(it);
  }
  if (arrival.hello.role == intake::Role::kCluster) return StartSession(std::move(arrival));  // clusters store nothing
  const bool looking = looked_up_.contains(id);
  if (!looking && (looked_up_.size() >= kLookUpsMax || !writer_.TryFind(id))) return;  // the collector will come back
  looked_up_.insert_or_assign(id, std::move(arrival));
}

void ShardCore::OnFound(const SessionId& id, const absl::StatusOr<uint64_t>& durable_sequence) {
  // Look-ups take space in the writer's queue, too. If look-ups alone filled the queue, no commit will report that the
  // queue has space again.
  ResumeReading({});
  auto it = looked_up_.find(id);
  if (it == looked_up_.end()) return;
  Arrival arrival = std::move(it->second);
  looked_up_.erase(it);
  if (stopping_) return;
  if (!durable_sequence.ok()) {
    LogWarning("cannot look up a session node={}: {}", EscapeForDisplay(arrival.hello.session.node_id),
               Message(durable_sequence.status()));
    return;
  }
  SessionMemory::Entry& entry = memory_.Add(id, *durable_sequence);
  entry.durable_sequence = std::max(entry.durable_sequence, *durable_sequence);
  StartSession(std::move(arrival));
}

void ShardCore::StartSession(Arrival arrival) {
  const SessionId id = arrival.hello.session.session_id;
  Live& live = live_[id];
  live.info = std::make_shared<const SessionInfo>(arrival.hello.session);
  live.sender = {arrival.hello.role == intake::Role::kCluster, arrival.hello.session.node_id};
  live.oldest_held = arrival.hello.next_sequence;
  live.asker = ++askers_;
  live.peer_id = std::move(arrival.peer_id);
  live.session = std::make_unique<intake::ServerSession>(alarms_, std::move(arrival), options_.server, clock_, metrics_,
                                                         static_cast<intake::SessionOwner&>(*this));
  live.session->Start();
  TellOptOuts(live);
}

// Sends the node's list if the node has another one. A node of an earlier release does not read it.
void ShardCore::TellOptOuts(Live& live) {
  if (options_.opt_outs == nullptr || (live.session->hello().features & intake::kFeatureOptOuts) == 0) return;
  const std::optional<OptOuts::List> list = options_.opt_outs->ListOf(live.info->node_id, live.opt_outs);
  if (!list) return;
  live.opt_outs = list->version;
  live.session->SendOptOuts(list->containers);
}

absl::StatusOr<intake::SessionOwner::Known> ShardCore::OnHello(const intake::Hello& hello) {
  if (hello.role != intake::Role::kNode && hello.role != intake::Role::kReplay &&
      hello.role != intake::Role::kCluster) {
    return absl::InvalidArgumentError("this reducer accepts only sessions of nodes, clusters and replays");
  }
  if (hello.session.node_id.empty() || hello.session.node_id.size() > kNodeIdBytesMax) {
    return absl::InvalidArgumentError("a node id must have 1 to 255 bytes");
  }
  const bool is_cluster = hello.role == intake::Role::kCluster;
  if (hello.session.node_id.starts_with(intake::kClusterIdPrefix) != is_cluster) {
    return absl::InvalidArgumentError(
        fmt::format("the id of a cluster must begin with \"{}\", and no other id may begin with this prefix",
                    intake::kClusterIdPrefix));
  }
  auto live = live_.find(hello.session.session_id);
  if (live != live_.end() && is_cluster) {
    RETURN_IF_ERROR(Register(live->second));
    return Known{};
  }
  SessionMemory::Entry* known = memory_.Find(hello.session.session_id);
  if (live == live_.end() || known == nullptr) return absl::InternalError("the session is unknown");
  // A collector that continues the session of an earlier process counts generations from 1 again. Otherwise a refused
  // generation of the earlier process would never be asked for, and a held dictionary could be taken for the new
  // process's.
  if (hello.dictionary_generation == 0) memory_.ForgetDictionary(*known);
  RETURN_IF_ERROR(Register(live->second));
  Known answer;
  answer.durable_sequence = known->durable_sequence;
  answer.dictionary_kept = known->dictionary_held && known->generation == hello.dictionary_generation;
  if (answer.dictionary_kept) {
    answer.have = known->have;
    answer.decoder = memory_.TakeDecoder(*known);
    live->second.symbols.Want(known->executables);
  }
  memory_.CountConnected(*known, hello.session.node_id, answer.decoder ? answer.decoder->memory_bytes() : 0,
                         live->second.symbols.memory_bytes());
  return answer;
}

absl::Status ShardCore::Register(Live& live) {
  const SessionInfo& info = *live.info;
  if (options_.metadata != nullptr && !options_.metadata->TryConnect(live.sender)) {
    return absl::ResourceExhaustedError("too many connections were opened at the same time");
  }
  live.registered = true;
  if (!live.sender.is_cluster && callbacks_.connected) callbacks_.connected(info.node_id);
  LogInfo("{} connected node={} host={} version={}", live.sender.is_cluster ? "cluster" : "node",
          EscapeForDisplay(info.node_id), EscapeForDisplay(info.host_name), EscapeForDisplay(info.agent_version));
  return absl::OkStatus();
}

bool ShardCore::HasRoom(const SessionInfo& info) {
  auto it = live_.find(info.session_id);
  return it == live_.end() || stopping_ || HasRoom(it->second, it->second.batch_bytes);
}

// Returns true if the queue has space for a batch of that size. If not, the session is resumed when a commit may have
// changed that.
bool ShardCore::HasRoom(Live& live, size_t memory_bytes) {
  if (clock_.Monotonic() < live.old_days_until) return false;
  if (!writer_.HasRoom()) {
    waiting_.AddForQueue(live.info->session_id);
    held_back_.Add();
    return false;
  }
  if (!share_.Allows(live.info->node_id, memory_bytes)) {
    waiting_.AddForShare(live.info->node_id, live.info->session_id);
    over_share_.Add();
    return false;
  }
  return true;
}

// Returns false if the batch must wait, because its node uses too many old days, or for the turn of its days. OnTick
// then resumes the session.
bool ShardCore::TakesDaysOf(Live& live, const RowBatch& batch) {
  const MonotonicNs now = clock_.Monotonic();
  const int64_t wait_ns = old_days_.Take(live.info->node_id, batch, clock_.Unix(), now);
  live.old_days_until = wait_ns > 0 ? MonotonicNs{now.value + wait_ns} : MonotonicNs{};
  if (wait_ns <= 0) return true;
  over_old_days_.Add();
  if (options_.server.refusals != nullptr) options_.server.refusals->Add(live.info->node_id, "old_days");
  return false;
}

absl::Status ShardCore::OnBatch(const SessionInfo& info, intake::IncomingBatch batch) {
  auto it = live_.find(info.session_id);
  if (it == live_.end()) return absl::InternalError("session is not open");
  Live& live = it->second;
  if (live.sender.is_cluster) return absl::InvalidArgumentError("a cluster must not send samples");
  if (stopping_) return absl::ResourceExhaustedError("the reducer is stopping");
  const uint64_t bytes = live.session != nullptr ? live.session->bytes_received() : 0;
  RowBatch pending = std::move(batch);
  pending.SetSession(live.info);
  pending.wire_bytes = bytes - live.counted_bytes;
  pending.oldest_held = live.oldest_held;
  const size_t memory_bytes = live.batch_bytes = MemoryOf(pending);
  if (!HasRoom(live, memory_bytes))
    return absl::ResourceExhaustedError("the store writer's queue has no room for the batch of this node");
  if (!TakesDaysOf(live, pending))
    return absl::ResourceExhaustedError("the batch must wait until its node may use its old days");
  // The session's memory must know the batch before the writer owns it.
  Remember(info, pending);
  const std::vector<ClosedSession> ended = pending.closes;
  if (!writer_.TrySubmit(std::move(pending))) return absl::FailedPreconditionError("the store writer has stopped");
  share_.Add(info.node_id, memory_bytes);
  live.counted_bytes = bytes;
  CutOff(info, ended);
  AskForSymbols(info.session_id, live);
  return absl::OkStatus();
}

// The batch that reports the end of these sessions counts their unread data as lost. So these data must not be stored
// after that batch.
void ShardCore::CutOff(const SessionInfo& sender, const std::vector<ClosedSession>& ended) {
  for (const ClosedSession& closed : ended) {
    const SessionId& id = closed.session_id;
    if (id == sender.session_id) continue;
    ended_.Add(sender.node_id, id);
    const auto looked_up = looked_up_.find(id);
    if (looked_up != looked_up_.end() && looked_up->second.hello.session.node_id == sender.node_id) {
      looked_up_.erase(looked_up);
    }
    const auto live = live_.find(id);
    if (live == live_.end() || live->second.info->node_id != sender.node_id) continue;
    LogInfo("node disconnected node={} cause=\"a later collector of the node reported that this collector has ended\"",
            EscapeForDisplay(sender.node_id));
    Disconnect(live->second);
    live_.erase(live);
  }
}

void ShardCore::Remember(const SessionInfo& info, const RowBatch& batch) {
  SessionMemory::Entry& entry = memory_.Add(info.session_id, 0);
  const bool continues = entry.dictionary_held && batch.derived && batch.derived->generation == entry.generation;
  if (continues) {
    // `executables` does not contain id 0.
    entry.executables.insert(entry.executables.begin(), ExecutableId());
    batch.derived->eviction.executables.ApplyTo(entry.executables);
    entry.executables.erase(entry.executables.begin());
  } else if (!entry.dictionary_held || entry.generation != batch.generation) {
    std::vector<ExecutableId>().swap(entry.executables);
  }
  entry.dictionary_held = batch.generation > entry.refused_generation;
  entry.generation = batch.generation;
  entry.have = batch.before;
  entry.have += batch.definitions;
  std::vector<ExecutableId> made;
  // A source file has no symbol table, so its id is left out.
  const std::vector<bool> is_named = FindNamedCode(batch.definitions, batch.before.executables);
  for (size_t i = 0; i < is_named.size(); ++i) {
    made.push_back(is_named[i] ? ExecutableId() : batch.definitions.executables[i].id);
  }
  Live& live = live_.find(info.session_id)->second;
  live.symbols.Want(made);
  entry.executables.insert(entry.executables.end(), made.begin(), made.end());
  CountMemory(live, entry);
}

void ShardCore::CountMemory(const Live& live, SessionMemory::Entry& entry) {
  memory_.CountConnected(entry, live.info->node_id, live.session != nullptr ? live.session->decoder_bytes() : 0,
                         live.symbols.memory_bytes());
}

void ShardCore::LimitMemory() {
  for (const SessionId& id : memory_.Evict()) {
    const auto live = live_.find(id);
    if (live == live_.end()) continue;
    live->second.symbols.DropWaiting();
    live->second.session->NeedDictionary();
  }
}

void ShardCore::OnCommitted(const std::vector<CommittedBatch>& all) {
  absl::flat_hash_set<std::string> nodes;
  for (const CommittedBatch& done : all) {
    share_.Remove(done.node_id);
    nodes.insert(done.node_id);
    const SessionId& id = done.session;
    SessionMemory::Entry& entry = memory_.Add(id, done.outcome.sequence);
    entry.durable_sequence = std::max(entry.durable_sequence, done.outcome.sequence);
    auto live = live_.find(id);
    if (done.outcome.need_dictionary && done.generation > entry.refused_generation) {
      entry.refused_generation = std::max(done.generation, entry.generation);
      entry.dictionary_held = false;
      if (live != live_.end() && !done.refused) live->second.session->NeedDictionary();
    }
    if (done.refused && live != live_.end()) RefuseBatch(done, live->second);
    if (live != live_.end()) live->second.session->Ack(entry.durable_sequence);
  }
  ResumeReading(nodes);
}

// The collector counts the batch's samples as lost{rejected}, and then sends an empty batch with this number. It
// connects again only after its longest pause, because the next batch may be refused as well.
void ShardCore::RefuseBatch(const CommittedBatch& done, Live& live) {
  live.session->Close({.reason = "the reducer cannot store this batch: its file is damaged, see the reducer's log",
                       .retry = false,
                       .rejected_sequence = done.refused_sequence});
}

void ShardCore::ResumeReading(const absl::flat_hash_set<std::string>& committed_nodes) {
  for (const SessionId& id : waiting_.Take(committed_nodes)) {
    if (const auto it = live_.find(id); it != live_.end()) it->second.session->Resume();
  }
}

bool ShardCore::OnMetadata(const SessionInfo& info, MetadataUpdate update) {
  auto it = live_.find(info.session_id);
  if (it == live_.end() || options_.metadata == nullptr) return true;
  if (options_.metadata->TryTake(it->second.sender, std::move(update))) return true;
  it->second.metadata_waits = true;
  metadata_retry_->StartOnce(kMetadataRetryMs);
  return false;
}

void ShardCore::RetryMetadata() {
  for (auto& [id, live] : live_) {
    if (std::exchange(live.metadata_waits, false)) live.session->Resume();
  }
}

void ShardCore::OnClosed(const SessionInfo& info, const absl::Status& why) {
  auto it = live_.find(info.session_id);
  if (it == live_.end()) return;
  LogInfo("{} disconnected node={} cause=\"{}\"", it->second.sender.is_cluster ? "cluster" : "node",
          EscapeForDisplay(info.node_id), why.ok() ? "closed by the collector" : EscapeForDisplay(Message(why)));
  Disconnect(it->second);
  live_.erase(it);
  if (closing_all_ && live_.empty()) closing_->StartOnce(0);
}

void ShardCore::Disconnect(Live& live) {
  if (live.session != nullptr) memory_.KeepDecoder(live.info->session_id, live.session->TakeDecoder());
  // This keeps the received part of a table before another node is asked for the table.
  live.session.reset();
  if (live.symbols.has_pending()) symbols_.Release(live.asker);
  if (!std::exchange(live.registered, false)) return;
  if (!live.sender.is_cluster && callbacks_.disconnected) callbacks_.disconnected(live.info->node_id);
  if (options_.metadata != nullptr) options_.metadata->Disconnect(live.sender);
}

void ShardCore::OnTick() {
  writer_.Maintain();
  const MonotonicNs now = clock_.Monotonic();
  WantReleased();
  const uint64_t opt_outs = options_.opt_outs != nullptr ? options_.opt_outs->version() : 0;
  const bool opt_outs_changed = std::exchange(opt_outs_, opt_outs) != opt_outs;
  for (auto& [id, live] : live_) {
    if (opt_outs_changed) TellOptOuts(live);
    if (live.old_days_until.value != 0 && live.old_days_until <= now) {
      live.old_days_until = {};
      live.session->Resume();
    }
    if (SessionMemory::Entry* entry = memory_.Find(id)) {
      live.symbols.Tick(entry->executables, now);
      CountMemory(live, *entry);
    }
    AskForSymbols(id, live);
  }
  LimitMemory();
}

}  // namespace tributary::ingest
