#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/tcp.h"
#include "intake/client/client.h"
#include "intake/credentials/credentials.h"
#include "intake/metadata/metadata_feed.h"

namespace tributary {

// Sends the contents of the feed to all reducers, with a session for each, because the cluster's kernel-collectors may
// send samples to any of them. Use it on the loop's thread.
class ClusterUplink {
 public:
  // Reads the credentials. The message of an error names the option with the unusable file. All objects passed by
  // reference must outlive the uplink.
  static absl::StatusOr<std::unique_ptr<ClusterUplink>> Open(Loop& loop, std::vector<HostPort> reducers,
                                                             IntakeCredentialOptions credentials,
                                                             intake::MetadataFeed& feed, const Clock& clock,
                                                             Metrics& metrics);

  // Starts the sessions, with `node_id` as the node id of this k8s-collector. Call it once. Returns an error if the
  // system returns no random bytes for the session ids.
  absl::Status Start(const std::string& node_id);
  IntakeCredentials& credentials() { return *credentials_; }
  bool started() const { return !clients_.empty(); }
  // Returns true if a whole snapshot of the feed has been sent to at least one reducer since the start.
  bool has_sent_all() const;
  // If a reducer does not accept this k8s-collector unless a person changes something: its address and the reason.
  // Otherwise returns "".
  std::string refusal() const;

 private:
  ClusterUplink(Loop& loop, std::vector<HostPort> reducers, intake::MetadataFeed& feed, const Clock& clock,
                Metrics& metrics)
      : loop_(loop), tcp_(loop), reducers_(std::move(reducers)), feed_(feed), clock_(clock), metrics_(metrics) {}

  Loop& loop_;
  TcpConnector tcp_;
  const std::vector<HostPort> reducers_;
  intake::MetadataFeed& feed_;
  const Clock& clock_;
  Metrics& metrics_;
  std::unique_ptr<IntakeCredentials> credentials_;
  std::vector<std::unique_ptr<intake::Client>> clients_;
};

}  // namespace tributary
