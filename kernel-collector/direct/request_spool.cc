#include "kernel-collector/direct/request_spool.h"

#include <algorithm>

#include "base/status.h"
#include "intake/spool/spool_segment.h"

namespace tributary {
namespace {

using intake::SpoolOperation;

uint64_t BlocksOf(uint64_t bytes) {
  return (bytes + RequestSpool::kBlockBytes - 1) / RequestSpool::kBlockBytes * RequestSpool::kBlockBytes;
}

// A sync of a directory costs as much as that of a file. On a slow disk, files are synced one by one, because a caller
// waits for those that are synced together.
constexpr size_t kSyncedAtOnce = 4;

// Returns true if another attempt to read the file cannot succeed.
bool IsLasting(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestSpool>> RequestSpool::Open(uint64_t bytes_max,
                                                                 std::unique_ptr<intake::SpoolStorage> storage,
                                                                 const Clock& clock, Metrics& metrics,
                                                                 size_t requests_max) {
  std::unique_ptr<RequestSpool> spool(new RequestSpool(bytes_max, requests_max, std::move(storage), clock, metrics));
  RETURN_IF_ERROR(spool->Load());
  return spool;
}

absl::Status RequestSpool::Load() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_->List());
  std::vector<RequestId> ids;
  size_t segments = 0;
  for (const std::string& name : names) {
    if (const std::optional<RequestId> id = ParseRequestName(name)) ids.push_back(*id);
    if (intake::ParseSegmentName(name)) ++segments;
  }
  if (segments > 0) {
    LogWarning(
        "the spool has batches for a reducer: they stay until kernel-collector sends to a reducer again files={}",
        segments);
  }
  std::sort(ids.begin(), ids.end());
  for (const RequestId id : ids) RETURN_IF_ERROR(WithContext(LoadRequest(id), RequestName(id)));
  if (!ids.empty()) next_id_ = ids.back() + 1;
  opened_ = unread_tried_ = clock_.Monotonic();
  ShowSizes();
  return absl::OkStatus();
}

absl::Status RequestSpool::LoadRequest(RequestId id) {
  const absl::StatusOr<intake::SpoolStorage::Start> file =
      storage_->ReadStart(RequestName(id), kRequestPrefixBytes + kRequestHeaderBytesMax);
  if (!file.ok()) {
    Failed(SpoolOperation::kRead, file.status());
    if (absl::IsNotFound(file.status())) return absl::OkStatus();
    unread_.push_back({id, BlocksOf(storage_->Size(RequestName(id)).value_or(0))});
    bytes_ += unread_.back().bytes;
    return absl::OkStatus();
  }
  absl::StatusOr<RequestHeader> header = DecodeRequestHeader(id, file->bytes, file->file_bytes);
  if (absl::IsFailedPrecondition(header.status())) return header.status();
  if (!header.ok()) {  // the number of its samples is not known
    Damaged(id, header.status());
    RemoveFile(id);
    return absl::OkStatus();
  }
  if (lost_.contains(header->identity.session)) {
    if (uint64_t held = 0; damage_log_.Allow(clock_.Monotonic(), &held)) {
      LogWarning(
          "a request in the spool is removed: it could not be read before its samples were counted as lost file={} "
          "samples={} events={} suppressed={}",
          RequestName(id), header->counts.total(), header->counts.events(), held);
    }
    RemoveFile(id);
    return absl::OkStatus();
  }
  found_[header->identity.session] += header->counts;
  Entry entry{.id = id,
              .bytes = BlocksOf(file->file_bytes),
              .counts = std::move(header->counts),
              .in_doubt = header->in_doubt,
              .earlier = true};
  if (!header->is_whole) {
    Damaged(id, Error(absl::StatusCode::kInvalidArgument, "the request is cut, or too large"));
    Lose(LossReason::kSpoolDamaged, entry);
    found_lost_ += entry.counts;
    RemoveFile(id);
    return absl::OkStatus();
  }
  Add(std::move(entry));
  if (entries_.size() > requests_max_) {
    found_lost_ += entries_.front().counts;
    DropFront(LossReason::kSpoolOverflow);
  }
  return absl::OkStatus();
}

void RequestSpool::RetryUnread(MonotonicNs end) {
  const std::vector<File> files = std::exchange(unread_, {});
  size_t tried = 0;
  while (tried < files.size() && (tried == 0 || clock_.Monotonic() < end)) {
    const auto [id, bytes] = files[tried++];
    bytes_ -= bytes;
    if (const absl::Status status = LoadRequest(id); !status.ok()) {
      LogWarning("a file in the spool stays unsent file={} cause=\"{}\"", RequestName(id), Message(status));
      bytes_ += bytes;
    }
  }
  unread_.insert(unread_.begin(), files.begin() + static_cast<ptrdiff_t>(tried), files.end());
  unread_tried_ = clock_.Monotonic();
  ShowSizes();
}

void RequestSpool::RetryUnreadIfDue() {
  MonotonicNs now = clock_.Monotonic();
  if (unread_.empty() || now.value - unread_tried_.value < kUnreadRetryNs) return;
  RetryUnread(MonotonicNs{now.value + kSyncNs});
  now = clock_.Monotonic();
  if (unread_.empty() || now.value - opened_.value < kUnreadableNs) return;
  LogWarning(
      "files in the spool cannot be read, and stay for the next start: check the disk of --spool-dir, and the rights "
      "of its files files={} first={}",
      unread_.size(), RequestName(unread_.front().id));
  unread_.clear();  // their bytes still count
}

void RequestSpool::SetLost(std::span<const Session> sessions) {
  for (const Session& session : sessions) {
    lost_.insert(session);
    lost_.insert(EventSession(session));
  }
}

void RequestSpool::Add(Entry entry) {
  bytes_ += entry.bytes;
  (entry.earlier ? earlier_ : own_) += entry.counts;
  const auto later = std::upper_bound(entries_.begin(), entries_.end(), entry.id,
                                      [](RequestId id, const Entry& other) { return id < other.id; });
  if (later == entries_.begin()) unreadable_since_.reset();  // another request is the oldest one now
  entries_.insert(later, std::move(entry));
  ShowSizes();
}

absl::StatusOr<RequestSpool::Front> RequestSpool::ReadFront() {
  while (!entries_.empty()) {
    const Entry& entry = entries_.front();
    const absl::StatusOr<std::string> file = storage_->Read(RequestName(entry.id));
    if (!file.ok()) {
      Failed(SpoolOperation::kRead, file.status());
      const MonotonicNs now = clock_.Monotonic();
      if (!unreadable_since_) unreadable_since_ = now;
      if (!IsLasting(file.status()) && now.value - unreadable_since_->value < kUnreadableNs) return file.status();
    }
    absl::StatusOr<DirectRequest> request = file.ok() ? DecodeRequest(entry.id, *file) : file.status();
    if (request.ok()) {
      unreadable_since_.reset();
      // The file's own numbers are the same. If a bit of the mark changed on the disk, the entry is right.
      request->in_doubt = entry.in_doubt;
      return Front{.request = *std::move(request), .earlier = entry.earlier};
    }
    Damaged(entry.id, request.status());
    DropFront(LossReason::kSpoolDamaged);
  }
  return Error(absl::StatusCode::kNotFound, "the spool is empty");
}

void RequestSpool::MarkFront(bool in_doubt) {
  Entry& entry = entries_.front();
  if (entry.in_doubt == in_doubt) return;
  entry.in_doubt = in_doubt;
  const absl::Status status = storage_->Overwrite(RequestName(entry.id), kRequestMarkOffset, RequestMark(in_doubt));
  if (!status.ok()) Failed(SpoolOperation::kClaim, status);
}

void RequestSpool::PopFront() {
  unreadable_since_.reset();
  Entry entry = std::move(entries_.front());
  entries_.pop_front();
  bytes_ -= entry.bytes;
  (entry.earlier ? earlier_ : own_) -= entry.counts;
  RemoveFile(entry.id);
  ShowSizes();
}

void RequestSpool::Lose(LossReason reason, const Entry& entry) {
  if (reason == LossReason::kSpoolDamaged) metrics_.damaged.Add(entry.counts);
  const bool is_overflow = reason == LossReason::kSpoolOverflow;
  if (is_overflow) metrics_.overflow.Add(entry.counts);
  if (entry.in_doubt) reason = LossReason::kInDoubt;
  dropped_.push_back({.reason = reason, .counts = entry.counts, .earlier = entry.earlier, .is_overflow = is_overflow});
}

void RequestSpool::DropFront(LossReason reason) {
  Lose(reason, entries_.front());
  PopFront();
}

absl::Status RequestSpool::Append(const DirectRequest& request) {
  const RequestId id = next_id_;
  const absl::StatusOr<std::string> file = EncodeRequest(id, request, gzip_);
  const uint64_t bytes = file.ok() ? BlocksOf(file->size()) : UINT64_MAX;
  if (bytes > bytes_max_) {
    const absl::Status status = Error(absl::StatusCode::kOutOfRange, "a request is too large for the spool");
    Failed(SpoolOperation::kAppend, status);
    Lose(LossReason::kSpoolOverflow, {.counts = request.counts, .in_doubt = request.in_doubt});
    return status;
  }
  if (unremoved_.size() >= kUnremovedMax) {
    const absl::Status status = Error(absl::StatusCode::kResourceExhausted, "too many files could not be removed");
    Failed(SpoolOperation::kAppend, status);
    return status;
  }
  ++next_id_;
  if (absl::Status status = storage_->Append(RequestName(id), *file); !status.ok()) {
    Failed(SpoolOperation::kAppend, status);
    RemoveFile(id);  // a part of it may be there
    // The disk may be as small as the spool's limit. Then the next attempt needs the room.
    if (absl::IsResourceExhausted(status)) MakeRoom(bytes);
    return status;
  }
  // The oldest requests are lost only now: if the disk fails, nothing is lost for a request that is not written.
  MakeRoom(bytes);
  if (unsynced_.empty()) unsynced_since_ = clock_.Monotonic();
  unsynced_.push_back({id, bytes});
  unsynced_bytes_ += bytes;
  Add({.id = id, .bytes = bytes, .counts = request.counts, .in_doubt = request.in_doubt});
  return absl::OkStatus();
}

void RequestSpool::MakeRoom(uint64_t bytes) {
  while (!entries_.empty() && (bytes_ + bytes > bytes_max_ || entries_.size() >= requests_max_))
    DropFront(LossReason::kSpoolOverflow);
}

void RequestSpool::Tick() {
  RemoveUnremoved();
  RetryUnreadIfDue();
  SyncIfDue();
}

void RequestSpool::SyncIfDue() {
  if (unsynced_.empty()) return;
  if (unsynced_bytes_ < kUnsyncedBytesMax && clock_.Monotonic().value - unsynced_since_.value < kUnsyncedNs) return;
  SyncFiles();
}

// A file that stays would be sent again by the next collector. A slow disk must not make a stop last for minutes.
RequestSpool::~RequestSpool() {
  const size_t untried = RemoveUnremoved(), failed = unremoved_.size() - untried;
  SyncFiles();
  if (untried > 0 || !unsynced_.empty()) {
    LogWarning(
        "the disk of --spool-dir is slow, so the stop did not wait for it: requests that are not synced yet are lost "
        "if the machine loses power now, and requests that are not removed are sent again unsynced={} unremoved={}",
        unsynced_.size(), untried);
  }
  if (failed > 0) {
    LogWarning(
        "files in the spool could not be removed, so their requests are sent again after the next start: check the "
        "disk of --spool-dir, and whether it is read-only files={} first={}",
        failed, RequestName(unremoved_[untried]));
  }
}

// Returns how many files were not tried, because the time was over. They are the first ones of the next call.
size_t RequestSpool::RemoveUnremoved() {
  const int64_t end_ns = clock_.Monotonic().value + kSyncNs;
  const std::vector<RequestId> ids = std::exchange(unremoved_, {});
  size_t tried = 0;
  while (tried < ids.size() && (tried == 0 || clock_.Monotonic().value < end_ns)) RemoveFile(ids[tried++]);
  unremoved_.insert(unremoved_.begin(), ids.begin() + static_cast<ptrdiff_t>(tried), ids.end());
  return ids.size() - tried;
}

void RequestSpool::SyncFiles() {
  MonotonicNs now = clock_.Monotonic();
  const int64_t end_ns = now.value + kSyncNs;
  size_t synced = 0, at_once = 1;
  while (synced < unsynced_.size() && (synced == 0 || now.value < end_ns)) {
    std::vector<std::string> names;
    for (; names.size() < at_once && synced < unsynced_.size(); ++synced) {
      names.push_back(RequestName(unsynced_[synced].id));
      unsynced_bytes_ -= unsynced_[synced].bytes;
    }
    if (absl::Status status = storage_->SyncAll(names); !status.ok()) Failed(SpoolOperation::kSync, status);
    const MonotonicNs before = std::exchange(now, clock_.Monotonic());
    at_once = now.value - before.value < kSlowSyncNs ? kSyncedAtOnce : 1;
  }
  unsynced_.erase(unsynced_.begin(), unsynced_.begin() + static_cast<ptrdiff_t>(synced));  // the next call goes on
}

void RequestSpool::RemoveFile(RequestId id) {
  if (const auto file = std::find_if(unsynced_.begin(), unsynced_.end(), [id](const File& f) { return f.id == id; });
      file != unsynced_.end()) {
    unsynced_bytes_ -= file->bytes;
    unsynced_.erase(file);
  }
  if (absl::Status status = storage_->Remove(RequestName(id)); !status.ok()) {
    Failed(SpoolOperation::kRemove, status);
    unremoved_.push_back(id);
  }
}

void RequestSpool::Damaged(RequestId id, const absl::Status& why) {
  metrics_.damaged_segments.Add();
  if (uint64_t held = 0; damage_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning(
        "a request in the spool cannot be read, check the disk of --spool-dir file={} cause=\"{}\" suppressed={}",
        RequestName(id), Message(why), held);
  }
}

void RequestSpool::Failed(SpoolOperation operation, const absl::Status& status) {
  metrics_.failures[static_cast<size_t>(operation)]->Add();
  if (uint64_t held = 0; log_limit_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("the spool failed error=\"{}\" suppressed={}", Message(status), held);
  }
}

SampleCounts RequestSpool::FoundOf(Session session) const {
  SampleCounts counts;
  for (const Session& each : {session, EventSession(session)}) {
    if (const auto found = found_.find(each); found != found_.end()) counts += found->second;
  }
  return counts;
}

void RequestSpool::ShowSizes() {
  metrics_.segments.Set(static_cast<int64_t>(entries_.size()));
  metrics_.bytes.Set(static_cast<int64_t>(bytes_));
  metrics_.samples.Set(static_cast<int64_t>(own_.total() + earlier_.total()));
}

}  // namespace tributary
