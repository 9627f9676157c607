#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel-collector/metadata/docker_container.h"
#include "kernel-collector/metadata/http_client.h"
#include "profile/attributes.h"

namespace tributary {

// Whether a container of that name can be Docker's: 64 hexadecimal digits.
bool IsDockerContainerId(std::string_view id);

// Asks Docker's API (Engine API, any version; podman has the same). Keeps what it was told of kImagesMax images.
// Blocks; one thread at a time.
//
// Errors of all: Unavailable or DeadlineExceeded: Docker does not answer; later it may. FailedPrecondition: there is no
// Docker. InvalidArgument, ResourceExhausted: that answer cannot be used, nor will it be a second time.
class DockerClient {
 public:
  static constexpr size_t kImagesMax = 256;
  static constexpr size_t kBodyBytesMax = 4u << 20;

  // `ask` reaches Docker, and gives up in time.
  explicit DockerClient(HttpAsk ask, std::string namespace_label = "")
      : ask_(std::move(ask)), namespace_label_(std::move(namespace_label)) {}

  // What it says of a container, with its image. NotFound: Docker has none of that id.
  absl::StatusOr<DockerContainer> Inspect(const std::string& id);
  // Ids of all that run.
  absl::StatusOr<std::vector<std::string>> ListRunning();

 private:
  absl::StatusOr<std::string> Get(std::string path);
  absl::StatusOr<Attributes> Image(const std::string& id);

  const HttpAsk ask_;
  const std::string namespace_label_;
  std::map<std::string, Attributes> images_;
};

// Over the socket at `path`, below `host_dir` if it is there by then; two seconds an answer.
HttpAsk DockerSocket(std::string path, std::string host_dir);

}  // namespace tributary
