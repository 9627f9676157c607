#include "k8s-collector/uplink/cluster_uplink.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "base/version.h"

namespace tributary {
namespace {

absl::StatusOr<SessionInfo> SessionOf(const std::string& node_id) {
  SessionInfo session{{.node_id = node_id, .agent_version = std::string(kVersion)}};
  if (getrandom(session.session_id.data(), session.session_id.size(), 0) !=
      static_cast<ssize_t>(session.session_id.size())) {
    return ErrnoStatus("getrandom", "session id", errno);
  }
  char host_name[256] = {};
  if (gethostname(host_name, sizeof host_name - 1) == 0) session.host_name = host_name;
  return session;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterUplink>> ClusterUplink::Open(Loop& loop, std::vector<HostPort> reducers,
                                                                   IntakeCredentialOptions credentials,
                                                                   intake::MetadataFeed& feed, const Clock& clock,
                                                                   Metrics& metrics) {
  std::unique_ptr<ClusterUplink> uplink(new ClusterUplink(loop, std::move(reducers), feed, clock, metrics));
  ASSIGN_OR_RETURN(uplink->credentials_,
                   IntakeCredentials::Load(std::move(credentials), uplink->tcp_, loop, clock, metrics));
  return uplink;
}

absl::Status ClusterUplink::Start(const std::string& node_id) {
  for (const HostPort& reducer : reducers_) {
    intake::ClientOptions options{.host = reducer.host, .port = reducer.port, .role = intake::Role::kCluster};
    ASSIGN_OR_RETURN(options.session, SessionOf(node_id));  // one session has one reducer
    options.token = [credentials = credentials_.get()] { return credentials->Token(); };
    options.metadata = &feed_;
    clients_.push_back(std::make_unique<intake::Client>(
        loop_, credentials_->connector(), std::move(options), clock_, metrics_,
        intake::Client::Callbacks{
            .next = [](uint64_t) -> std::optional<intake::Outgoing> { return std::nullopt; },  // no samples
            .acked = [](const intake::SendWindow::Entry&) {},
            .rejected = [](const SampleCounts&) {},
            .not_taken = {},
            .need_symbols = [](const ExecutableId&) {},
            .need_digest = {},
            .changed = [] {}}));
    clients_.back()->Start();
  }
  LogInfo("sending metadata reducers={} node={}", reducers_.size(), node_id);
  return absl::OkStatus();
}

std::string ClusterUplink::refusal() const {
  for (const auto& client : clients_) {
    if (client->refusal().empty()) continue;
    return fmt::format("{}:{}: {}", client->options().host, client->options().port, client->refusal());
  }
  return "";
}

bool ClusterUplink::has_sent_all() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& client) { return client->has_sent_metadata(); });
}

}  // namespace tributary
