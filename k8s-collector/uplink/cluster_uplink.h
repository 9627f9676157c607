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

// Sends the feed's content to every reducer, each over its own session, because a node may connect to any reducer. On
// the loop's thread.
class ClusterUplink {
 public:
  // An error names the option with the unusable file. The references must outlive the uplink.
  static absl::StatusOr<std::unique_ptr<ClusterUplink>> Open(Loop& loop, std::vector<HostPort> reducers,
                                                             IntakeCredentialOptions credentials,
                                                             intake::MetadataFeed& feed, const Clock& clock,
                                                             Metrics& metrics);

  // Connects as the node with that id. Call it once. Internal if there is no source of randomness.
  absl::Status Start(const std::string& node_id);
  IntakeCredentials& credentials() { return *credentials_; }
  bool started() const { return !clients_.empty(); }
  // Returns true if at least one reducer has been sent a whole snapshot of the feed since the start.
  bool has_sent_all() const;

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
