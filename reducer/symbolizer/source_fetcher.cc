#include "reducer/symbolizer/source_fetcher.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

// Returns the path as a server knows it: absolute, without "." and "..". Paths come from symbol tables, which are
// untrusted.
std::optional<std::string> Normalized(std::string_view path) {
  if (path.size() > SourceFetcher::kPathBytesMax || !path.starts_with('/')) return std::nullopt;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') return std::nullopt;
  }
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.starts_with("//")) normal.erase(0, 1);
  if (normal.ends_with('/')) return std::nullopt;
  return normal;
}

}  // namespace

SourceFetcher::SourceFetcher(Options options, Fetch fetch, SymbolNotices& notices, const Clock& clock, Metrics& metrics)
    : options_(options),
      fetch_(std::move(fetch)),
      notices_(notices),
      clock_(clock),
      dropped_(metrics.AddCounter("tributary_symbolizer_sources_dropped_total",
                                  "Times that a source file was not requested from debuginfod servers, because too "
                                  "many requests were waiting.")),
      evicted_(metrics.AddCounter(
          "tributary_symbolizer_sources_evicted_total",
          "Source files from debuginfod servers that were removed from the cache to make room; a file that no server "
          "has takes an entry of the cache, too.")),
      bytes_(metrics.AddGauge("tributary_symbolizer_sources_bytes",
                              "Memory of the source files from debuginfod servers, in bytes.")) {
  if (options_.in_background) thread_ = std::thread([this] { Run(); });
}

void SourceFetcher::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

SourceFetcher::Source SourceFetcher::Find(const ExecutableId& build_id, std::string_view path) {
  if (build_id.kind() != ExecutableIdKind::kGnuBuildId) return {};
  std::optional<std::string> normal = Normalized(path);
  if (!normal) return {};
  const Key key(build_id, *std::move(normal));
  std::lock_guard lock(mutex_);
  auto known = files_.find(key);
  if (known != files_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second.used);
    const File& file = known->second;
    if (file.state != State::kNone || clock_.Monotonic() < file.not_before) return {file.state, file.text};
  }
  if (waiting_.size() == kWaitingMax) {
    dropped_.Add();
    return {State::kComing, nullptr};  // the caller may ask again
  }
  if (known == files_.end()) {
    recent_.push_front(key);
    known = files_.try_emplace(key).first;
    known->second.used = recent_.begin();
    MakeRoom();
  }
  known->second.state = State::kComing;
  waiting_.push_back(key);
  wake_.notify_one();
  return {State::kComing, nullptr};
}

void SourceFetcher::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (!stopping_) FetchNext(lock);
  }
}

void SourceFetcher::FetchWaiting() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) FetchNext(lock);
}

void SourceFetcher::FetchNext(std::unique_lock<std::mutex>& lock) {
  const Key key = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  absl::StatusOr<std::string> text = fetch_(key.first, key.second);
  lock.lock();
  if (!stopping_) Keep(key, std::move(text));
}

void SourceFetcher::Keep(const Key& key, absl::StatusOr<std::string> text) {
  if (!text.ok() && !absl::IsNotFound(text.status())) {
    // The notice names no executable: a server that is down gives one notice, not one per executable.
    notices_.Add({}, "source text: " + Message(text.status()));
  }
  auto known = files_.find(key);
  if (known == files_.end()) return;  // evicted, because so many were asked for meanwhile
  File& file = known->second;
  if (text.ok() && text->size() <= options_.text_bytes_max) {
    text_bytes_ += text->size();
    file.text = std::make_shared<const std::string>(*std::move(text));
    file.state = State::kHere;
  } else {
    const bool is_down = absl::IsUnavailable(text.status());
    file.state = State::kNone;
    file.not_before.value = clock_.Monotonic().value + (is_down ? options_.failed_retry_ns : options_.missing_retry_ns);
  }
  MakeRoom();
}

void SourceFetcher::MakeRoom() {
  while (files_.size() > kFilesMax || text_bytes_ > options_.text_bytes_max) {
    const auto oldest = files_.find(recent_.back());
    if (oldest->second.text != nullptr) text_bytes_ -= oldest->second.text->size();
    files_.erase(oldest);
    recent_.pop_back();
    evicted_.Add();
  }
  bytes_.Set(static_cast<int64_t>(text_bytes_));
}

}  // namespace tributary
