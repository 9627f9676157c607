#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/docker_container.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

namespace tributary {

// Returns whether `id` can be a Docker container id: 64 hexadecimal digits.
bool IsDockerContainerId(std::string_view id);

// Sends requests to Docker's Engine API (any version; podman has the same API). Caches the data of at most kImagesMax
// images. Calls block. Only one thread at a time may use this object.
//
// Errors of all functions: Unavailable or DeadlineExceeded: Docker does not answer now, but may answer later.
// FailedPrecondition: Docker's socket does not exist. InvalidArgument, ResourceExhausted: the answer is unusable, and a
// second attempt would not help.
class DockerClient {
 public:
  static constexpr size_t kImagesMax = 256;
  static constexpr size_t kBodyBytesMax = 4u << 20;

  // `ask` must send requests to Docker, and must have a timeout.
  explicit DockerClient(HttpAsk ask, std::string namespace_label = "")
      : ask_(std::move(ask)), namespace_label_(std::move(namespace_label)) {}

  // Returns Docker's data about a container and its image. NotFound: Docker has no container with this id.
  absl::StatusOr<DockerContainer> Inspect(const std::string& id);
  // Returns the ids of all running containers.
  absl::StatusOr<std::vector<std::string>> ListRunning();

 private:
  absl::StatusOr<std::string> Get(std::string path);
  absl::StatusOr<Attributes> Image(const std::string& id);

  const HttpAsk ask_;
  const std::string namespace_label_;
  std::map<std::string, Attributes> images_;
};

// Returns an HttpAsk that sends requests to the Unix socket `path`. If `host_dir`/path exists at the time of the
// request, it uses that socket. Each request has a timeout of two seconds.
HttpAsk DockerSocket(std::string path, std::string host_dir);

}  // namespace tributary
