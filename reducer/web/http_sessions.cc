#include "reducer/web/http_sessions.h"

#include <utility>

#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

constexpr int64_t kTlsFailureLogNs = 10 * kNsPerSecond;

bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address == "[::1]" || address.starts_with("[::ffff:127.");
}

}  // namespace

HttpSessions::HttpSessions(Loop& loop, const HttpLimits& limits, const HttpCaps& caps, Run run, Metrics& metrics)
    : loop_(loop),
      limits_(limits),
      caps_(caps),
      run_(std::move(run)),
      refusals_(metrics),
      open_(metrics.AddGauge("tributary_web_connections", "Open HTTP connections to the reducer.")),
      held_(metrics.AddGauge("tributary_web_answer_bytes",
                             "Bytes of HTTP answers in memory that clients have not read yet.")),
      refused_(metrics.AddCounter("tributary_web_connections_refused_total",
                                  "HTTP connections that were closed at once, because all others were busy, and failed "
                                  "attempts to accept a connection, because no file descriptor or memory was left.")),
      cancelled_(metrics.AddCounter("tributary_web_cancelled_total",
                                    "HTTP requests whose client disconnected before the answer was ready.")),
      tls_failures_(kTlsFailureLogNs),
      cleaner_(loop, [this] { ended_.clear(); }) {}

HttpSessions::~HttpSessions() { CloseAll(); }

HttpSession* HttpSessions::Find(uint64_t id) {
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.session.get();
}

HttpSession* HttpSessions::LongestWaiting(const std::string& address, bool reserved) {
  HttpSession* longest = nullptr;
  for (const auto& [id, entry] : sessions_) {
    HttpSession& session = *entry.session;
    if (session.is_running() || entry.is_reserved != reserved) continue;
    if (!address.empty() && session.address() != address) continue;
    if (longest == nullptr || session.waiting_since_ms() < longest->waiting_since_ms()) longest = &session;
  }
  return longest;
}

// Returns false if the new connection must be closed. Sets `is_reserved` if it gets a reserved place.
bool HttpSessions::MakeRoom(const std::string& address, bool* is_reserved) {
  if (!IsLoopback(address)) {
    const auto count = addresses_.find(address);
    if (count != addresses_.end() && count->second >= caps_.connections_per_address_max) {
      refusals_.Add(WebRefusal::kAddress);
      HttpSession* longest = LongestWaiting(address, /*reserved=*/false);
      if (longest == nullptr) return false;
      longest->Close();
    }
  }
  if (sessions_.size() - reserved_ < caps_.connections_max) return true;
  refusals_.Add(WebRefusal::kConnections);
  if (HttpSession* longest = LongestWaiting("", /*reserved=*/false)) {
    longest->Close();
    return true;
  }
  *is_reserved = true;
  if (reserved_ < caps_.connections_reserved) return true;
  HttpSession* longest = LongestWaiting("", /*reserved=*/true);
  if (longest == nullptr) return false;
  longest->Close();
  return true;
}

void HttpSessions::Add(std::unique_ptr<Stream> stream, std::string_view first_bytes) {
  const uint64_t id = next_id_++;
  bool is_reserved = false;
  HttpSession::Callbacks callbacks{
      .run =
          [this, id](std::shared_ptr<HttpExchange> exchange) {
            return run_(id, sessions_.at(id).is_reserved, std::move(exchange));
          },
      .refused = [this](WebRefusal refusal) { refusals_.Add(refusal); },
      .answer_changed = [this, id] { LimitAnswers(id); },
      .body_wanted =
          [this, id] {
            loop_.Post([this, id] {
              if (HttpSession* session = Find(id)) session->OnBodyWanted();
            });
          },
      .cancelled = [this] { cancelled_.Add(); },
      .tls_failed = [this,
                     id](const absl::Status& status) { OnTlsFailure(sessions_.at(id).session->address(), status); },
      .closed = [this, id] { Remove(id); },
  };
  auto session = std::make_unique<HttpSession>(loop_, std::move(stream), first_bytes, limits_, std::move(callbacks));
  if (!MakeRoom(session->address(), &is_reserved)) {
    refused_.Add();
    return;
  }
  if (is_reserved) ++reserved_;
  if (!IsLoopback(session->address())) ++addresses_[session->address()];
  HttpSession& added = *session;
  sessions_.emplace(id, Entry{.session = std::move(session), .is_reserved = is_reserved});
  open_.Set(static_cast<int64_t>(sessions_.size()));
  added.Start();
}

void HttpSessions::Remove(uint64_t id) {
  const auto it = sessions_.find(id);
  if (it->second.is_reserved) --reserved_;
  if (const auto count = addresses_.find(it->second.session->address()); count != addresses_.end()) {
    if (--count->second == 0) addresses_.erase(count);
  }
  ended_.push_back(std::move(it->second.session));
  sessions_.erase(it);
  open_.Set(static_cast<int64_t>(sessions_.size()));
  cleaner_.StartOnce(0);
}

// Keeps the answers in memory below their limit. The answer of session `id` is never given up.
void HttpSessions::LimitAnswers(uint64_t id) {
  while (true) {
    uint64_t total = 0;
    std::pair<uint64_t, HttpSession*> slowest{0, nullptr};
    for (const auto& [other, entry] : sessions_) {
      HttpSession& session = *entry.session;
      total += session.answer_bytes();
      if (other == id || !session.is_writing()) continue;
      if (slowest.second == nullptr || session.waiting_since_ms() < slowest.second->waiting_since_ms()) {
        slowest = {other, &session};
      }
    }
    held_.Set(static_cast<int64_t>(total));
    if (total <= caps_.answer_bytes_max || slowest.second == nullptr) return;
    refusals_.Add(WebRefusal::kAnswers);
    slowest.second->Close();
  }
}

void HttpSessions::OnTlsFailure(const std::string& address, const absl::Status& status) {
  refusals_.Add(WebRefusal::kTls);
  const MonotonicNs now{static_cast<int64_t>(uv_now(loop_.raw())) * kNsPerMs};
  if (uint64_t suppressed = 0; tls_failures_.Allow(now, &suppressed)) {
    LogWarning("HTTPS connection refused address={} cause=\"{}\" suppressed={}", address, Message(status), suppressed);
  }
}

void HttpSessions::CloseLongestWaiting() {
  refused_.Add();
  if (HttpSession* longest = LongestWaiting("", /*reserved=*/false)) longest->Close();
}

void HttpSessions::Stop() {
  for (auto it = sessions_.begin(); it != sessions_.end();) (it++)->second.session->Stop();
}

void HttpSessions::CloseAll() {
  while (!sessions_.empty()) sessions_.begin()->second.session->Close();
}

bool HttpSessions::is_writing() const {
  for (const auto& [id, entry] : sessions_) {
    if (entry.session->is_writing()) return true;
  }
  return false;
}

}  // namespace tributary
