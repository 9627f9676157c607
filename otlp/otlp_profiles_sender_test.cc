#include "otlp/otlp_profiles_sender.h"

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "otlp/grpc_transport_testing.h"
#include "otlp/json.h"
#include "otlp/transcoder.h"

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;

// Returns a request that each generation writes in another way.
ProfilesRequest SmallRequest() {
  ProfilesRequest request;
  request.mutable_dictionary()->add_stack_table();
  request.mutable_dictionary()->add_stack_table()->add_location_indices(1);
  auto* sample = request.add_resource_profiles()->add_scope_profiles()->add_profiles()->add_samples();
  sample->set_stack_index(1);
  sample->add_values(1);
  return request;
}

class OtlpProfilesSenderTest : public ::testing::TestWithParam<Generation> {
 protected:
  std::string InProtobuf() const { return Transcode(SmallRequest(), GetParam())->SerializeAsString(); }
};

TEST_P(OtlpProfilesSenderTest, SendsItsGenerationOverHttp) {
  const TestHttpServer server({.body = ""});
  HttpTransport::Options options = OptionsFor(server);
  options.common.gzip = false;
  OtlpProfilesSender sender(*HttpTransport::Make(options, Clock::Real()), GetParam());
  EXPECT_TRUE(sender.Send(SmallRequest(), {}, kSendNs).status.ok());
  EXPECT_THAT(server.Bodies(), ElementsAre(InProtobuf()));
  EXPECT_NE(InProtobuf(), SmallRequest().SerializeAsString());
}

TEST_P(OtlpProfilesSenderTest, SendsItsGenerationAsJson) {
  const TestHttpServer server({.body = ""});
  HttpTransport::Options options = OptionsFor(server);
  options.common.gzip = false;
  options.encoding = Encoding::kJson;
  OtlpProfilesSender sender(*HttpTransport::Make(options, Clock::Real()), GetParam());
  EXPECT_TRUE(sender.Send(SmallRequest(), {}, kSendNs).status.ok());
  EXPECT_THAT(server.Bodies(), ElementsAre(ToJson(*Transcode(SmallRequest(), GetParam()))));
}

TEST_P(OtlpProfilesSenderTest, SendsItsGenerationOverGrpc) {
  const h2::TestServer server([](uint32_t stream, int) { return h2::TestServer::Answer{.bytes = Success(stream)}; });
  OtlpProfilesSender sender(*GrpcTransport::Make({.target = server.target(), .gzip = false}, kProfilesSignal),
                            GetParam());
  EXPECT_TRUE(sender.Send(SmallRequest(), {}, kSendNs).status.ok());
  ASSERT_EQ(server.Bodies().size(), 1u);
  EXPECT_EQ(server.Bodies()[0].substr(kGrpcPrefixBytes), InProtobuf());
}

INSTANTIATE_TEST_SUITE_P(Generations, OtlpProfilesSenderTest,
                         ::testing::Values(Generation::k1_7, Generation::k1_8, Generation::k1_9));

}  // namespace
}  // namespace tributary::otlp
