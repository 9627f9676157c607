#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/options.h"
#include "kernel-collector/metadata/cloud.h"
#include "profile/attributes.h"

namespace tributary {

// The attributes that the operator sets for a node, and the sources of further attributes.
struct MetadataOptions {
  std::string host_dir;      // where parts of the host's file system are mounted
  Attributes resource;       // labels; --resource-attribute takes precedence over them
  bool detect_cloud = true;  // true: the firmware shows the cloud; false: use `cloud`
  Cloud cloud = Cloud::kNone;
  std::string cloud_endpoint;  // "": the usual endpoint of the cloud
  int64_t cloud_timeout_ns = 0;
  std::string docker_socket;  // "": Docker is not asked
  std::string docker_namespace_label;
};

// Adds the options of MetadataOptions to a binary's table. The object must outlive Parse; call Take afterwards.
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
