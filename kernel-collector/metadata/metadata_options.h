#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/options.h"
#include "kernel-collector/metadata/cloud.h"
#include "profile/attributes.h"

namespace tributary {

// The options for a node's metadata: attributes that the operator sets, and the sources of further attributes.
struct MetadataOptions {
  std::string host_dir;      // where parts of the host's file system are mounted
  Attributes resource;       // of --labels-* and --resource-attribute; the latter takes precedence
  bool detect_cloud = true;  // true: the firmware shows the cloud; false: use `cloud`
  Cloud cloud = Cloud::kNone;
  std::string cloud_endpoint;  // "": the usual endpoint of the cloud
  int64_t cloud_timeout_ns = 0;
  std::string docker_socket;  // "": Docker is not asked
  std::string docker_namespace_label;
};

// Adds the options for MetadataOptions to a binary's table of options. This object must exist until Options::Parse has
// returned. The caller must then call Take.
class MetadataOptionTable {
 public:
  explicit MetadataOptionTable(MetadataOptions& out) : out_(out) {}

  void AddTo(Options& table);
  absl::Status Take();

 private:
  static constexpr size_t kLabelCount = 6;

  MetadataOptions& out_;
  std::string labels_[kLabelCount];
  std::vector<std::string> attributes_;
  std::string cloud_, timeout_;
  int64_t old_timeout_us_ = 0;
};

}  // namespace tributary
