#pragma once

#include <memory>

namespace opentelemetry::proto::collector::profiles::v1development {
class ExportProfilesServiceRequest;
}

namespace tributary::otlp {

using ProfilesRequest = ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceRequest;
// Deletes a request, and the protobuf arena that it is in, if there is one: an arena has only one request. With this
// deleter, code that owns a request need not include protobuf's headers.
struct DeleteRequest {
  void operator()(ProfilesRequest* request) const;
};
using ProfilesRequestPtr = std::unique_ptr<ProfilesRequest, DeleteRequest>;

}  // namespace tributary::otlp
