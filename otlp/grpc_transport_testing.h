#pragma once

#include <string>

#include "otlp/grpc_frame.h"
#include "otlp/grpc_transport.h"
#include "otlp/h2_server_testing.h"
#include "otlp/http_transport_testing.h"
#include "otlp/otlp_profiles_sender.h"

// For tests: sends small requests over gRPC to an h2::TestServer.

namespace tributary::otlp {

inline const h2::Fields kHead = {{":status", "200"}, {"content-type", "application/grpc"}};
inline const std::string kEmptyFrame(kGrpcPrefixBytes, '\0');

// Returns an answer that accepts a request.
inline std::string Success(uint32_t stream) {
  return h2::Headers(stream, kHead, false) + h2::Data(stream, kEmptyFrame) +
         h2::Headers(stream, {{"grpc-status", "0"}}, true);
}

// Returns a request that is larger than the windows of an h2::TestServer, so that it cannot be sent as a whole.
inline ProfilesRequest LargeRequest() {
  ProfilesRequest request = Request();
  request.mutable_dictionary()->add_string_table(std::string(4u << 20, 'x'));
  return request;
}

inline OtlpProfilesSender GrpcSender(const TransportOptions& options) {
  return OtlpProfilesSender(*GrpcTransport::Make(options, kProfilesSignal));
}

inline SendResult SendTo(const h2::TestServer& server) {
  return GrpcSender({.target = server.target()}).Send(Request(), {}, kSendNs);
}

}  // namespace tributary::otlp
