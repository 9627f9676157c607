#include "kernel-collector/metadata/cloud.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/directory_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

// Returns the detected cloud for these files of /sys (firmware and hypervisor).
Cloud DetectFrom(const std::map<std::string, std::string>& files) {
  const TestDirectory sys;
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = sys.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  return DetectCloud(sys.path());
}

const std::string kDmi = "class/dmi/id/";

TEST(DetectCloud, KnowsEachByItsFirmware) {
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Amazon EC2"}, {kDmi + "product_name", "m5.large"}}), Cloud::kAws);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Xen"}, {kDmi + "bios_version", "4.11.amazon"}}), Cloud::kAws);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Xen"}, {"hypervisor/uuid", "ec2e1916-9099-7caf-fd21-012345abcdef"}}),
            Cloud::kAws);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Google"}, {kDmi + "product_name", "Google Compute Engine"}}),
            Cloud::kGcp);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Microsoft Corporation"},
                        {kDmi + "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"}}),
            Cloud::kAzure);
}

TEST(DetectCloud, OtherMachinesBelongToNoCloud) {
  EXPECT_EQ(DetectFrom({}), Cloud::kNone);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "QEMU"}}), Cloud::kNone);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Xen"}, {kDmi + "bios_version", "4.11"}}), Cloud::kNone);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Google"}, {kDmi + "product_name", "Pixelbook"}}), Cloud::kNone);
  EXPECT_EQ(DetectFrom({{kDmi + "sys_vendor", "Microsoft Corporation"}, {kDmi + "chassis_asset_tag", "none"}}),
            Cloud::kNone);
}

// Answers by method and path; every other request gets 404.
struct FakeService {
  std::map<std::string, HttpResponse> answers;
  std::vector<HttpRequest> requests;

  void Add(const std::string& request, std::string body) {
    answers[request] = {.status = 200, .body = std::move(body)};
  }
  HttpAsk Ask() {
    return [this](const HttpRequest& request) -> absl::StatusOr<HttpResponse> {
      requests.push_back(request);
      const auto it = answers.find(request.method + " " + request.path);
      return it == answers.end() ? HttpResponse{.status = 404} : it->second;
    };
  }
};

constexpr char kToken[] = "PUT /latest/api/token";
constexpr char kDocument[] = "GET /latest/dynamic/instance-identity/document";
constexpr char kDocumentText[] = R"({
  "accountId" : "123456789012", "architecture" : "x86_64", "availabilityZone" : "us-gov-west-1b",
  "billingProducts" : null, "imageId" : "ami-5fb8c835", "instanceId" : "i-1234567890abcdef0",
  "instanceType" : "t2.micro", "region" : "us-gov-west-1", "version" : "2017-09-30"})";

TEST(AskCloud, Aws) {
  FakeService service;
  service.Add(kToken, "AQAAAtoken==");
  service.Add(kDocument, kDocumentText);
  auto attributes = AskCloud(Cloud::kAws, service.Ask());
  ASSERT_TRUE(attributes.ok()) << attributes.status();
  EXPECT_EQ(*attributes,
            (Attributes{
                {"cloud.account.id", "123456789012"},
                {"cloud.availability_zone", "us-gov-west-1b"},
                {"cloud.platform", "aws_ec2"},
                {"cloud.provider", "aws"},
                {"cloud.region", "us-gov-west-1"},
                {"cloud.resource_id", "arn:aws-us-gov:ec2:us-gov-west-1:123456789012:instance/i-1234567890abcdef0"},
                {"host.id", "i-1234567890abcdef0"},
                {"host.image.id", "ami-5fb8c835"},
                {"host.type", "t2.micro"},
            }));
  ASSERT_EQ(service.requests.size(), 2u);
  EXPECT_EQ(service.requests[0].headers[0],
            (std::pair<std::string, std::string>("X-aws-ec2-metadata-token-ttl-seconds", "60")));
  EXPECT_EQ(service.requests[1].headers[0],
            (std::pair<std::string, std::string>("X-aws-ec2-metadata-token", "AQAAAtoken==")));
}

TEST(AskCloud, RefusesAwsTokensThatCouldForgeAHeader) {
  for (const std::string& token : {std::string("a\r\nHost: evil"), std::string("<html> </html>"), std::string(),
                                   std::string(2000, 'x'), std::string("a\0b", 3)}) {
    FakeService service;
    service.Add(kToken, token);
    service.Add(kDocument, kDocumentText);
    EXPECT_EQ(AskCloud(Cloud::kAws, service.Ask()).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(service.requests.size(), 1u);
  }
}

TEST(AskCloud, AMissingAwsTokenNamesTheHopLimit) {
  auto attributes = AskCloud(Cloud::kAws, [](const HttpRequest&) -> absl::StatusOr<HttpResponse> {
    return Error(absl::StatusCode::kDeadlineExceeded, "no answer within the time limit");
  });
  EXPECT_NE(Message(attributes.status()).find("hop limit"), std::string::npos) << attributes.status();
}

FakeService GoogleService() {
  FakeService service;
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"project/project-id", "shop-prod"},
           {"instance/id", "4520031799277581759"},
           {"instance/zone", "projects/123456/zones/europe-west1-b"},
           {"instance/machine-type", "projects/123456/machineTypes/e2-standard-4"},
           {"instance/image", "projects/cos-cloud/global/images/cos-113"},
           {"instance/attributes/cluster-name", "shop"},
       }) {
    service.answers["GET /computeMetadata/v1/" + name] = {
        .status = 200, .headers = {{"metadata-flavor", "Google"}}, .body = value};
  }
  return service;
}

TEST(AskCloud, Gcp) {
  FakeService service = GoogleService();
  auto attributes = AskCloud(Cloud::kGcp, service.Ask());
  ASSERT_TRUE(attributes.ok()) << attributes.status();
  EXPECT_EQ(*attributes, (Attributes{
                             {"cloud.account.id", "shop-prod"},
                             {"cloud.availability_zone", "europe-west1-b"},
                             {"cloud.platform", "gcp_kubernetes_engine"},
                             {"cloud.provider", "gcp"},
                             {"cloud.region", "europe-west1"},
                             {"cloud.resource_id",
                              "//compute.googleapis.com/projects/shop-prod/zones/europe-west1-b/instances/"
                              "4520031799277581759"},
                             {"host.id", "4520031799277581759"},
                             {"host.image.id", "projects/cos-cloud/global/images/cos-113"},
                             {"host.type", "e2-standard-4"},
                             {"k8s.cluster.name", "shop"},
                         }));
  for (const HttpRequest& request : service.requests) {
    EXPECT_EQ(request.headers, (decltype(request.headers){{"Metadata-Flavor", "Google"}}));
  }
}

TEST(AskCloud, GcpOutsideOfAClusterHasNoClusterName) {
  FakeService service = GoogleService();
  service.answers.erase("GET /computeMetadata/v1/instance/attributes/cluster-name");
  auto attributes = AskCloud(Cloud::kGcp, service.Ask());
  ASSERT_TRUE(attributes.ok()) << attributes.status();
  EXPECT_EQ(FindAttribute(*attributes, "cloud.platform"), "gcp_compute_engine");
  EXPECT_EQ(FindAttribute(*attributes, "k8s.cluster.name"), "");
}

TEST(AskCloud, RefusesAnswersWithoutGooglesHeader) {
  FakeService service = GoogleService();
  for (auto& [name, answer] : service.answers) answer.headers.clear();
  EXPECT_EQ(AskCloud(Cloud::kGcp, service.Ask()).status().code(), absl::StatusCode::kInvalidArgument);
}

constexpr char kCompute[] = "GET /metadata/instance/compute?api-version=2020-09-01&format=json";

TEST(AskCloud, Azure) {
  FakeService service;
  service.Add(kCompute, R"({"azEnvironment":"AzurePublicCloud","location":"westeurope","name":"web-1",
      "resourceGroupName":"shop","subscriptionId":"8d10da13-8125-4ba9-a717-bf7490507b3d","vmSize":"Standard_D4s_v3",
      "resourceId":"/subscriptions/8d10/resourceGroups/shop/providers/Microsoft.Compute/virtualMachines/web-1",
      "vmId":"02aab8a4-74ef-476e-8182-f6d2ba4166a6","zone":"2","storageProfile":{"imageReference":{"id":"",
      "offer":"debian-12","publisher":"Debian","sku":"12-gen2","version":"latest"}}})");
  auto attributes = AskCloud(Cloud::kAzure, service.Ask());
  ASSERT_TRUE(attributes.ok()) << attributes.status();
  EXPECT_EQ(*attributes,
            (Attributes{
                {"cloud.account.id", "8d10da13-8125-4ba9-a717-bf7490507b3d"},
                {"cloud.availability_zone", "westeurope-2"},
                {"cloud.platform", "azure.vm"},
                {"cloud.provider", "azure"},
                {"cloud.region", "westeurope"},
                {"cloud.resource_id",
                 "/subscriptions/8d10/resourceGroups/shop/providers/Microsoft.Compute/virtualMachines/web-1"},
                {"host.id", "02aab8a4-74ef-476e-8182-f6d2ba4166a6"},
                {"host.image.id", "Debian:debian-12:12-gen2:latest"},
                {"host.type", "Standard_D4s_v3"},
            }));
  EXPECT_EQ(service.requests[0].headers[0], (std::pair<std::string, std::string>("Metadata", "true")));
}

TEST(AskCloud, RefusesAnswersOfOtherServices) {
  for (const char* body : {"<html>login</html>", "", "[]", "null", "{}", "{\"instanceId\":7,\"vmId\":[]}",
                           "{\"instanceId\":\"i\\u000a1\",\"vmId\":\"a\\u0000\"}"}) {
    FakeService service;
    service.Add(kToken, "token");
    service.Add(kDocument, body);
    service.Add(kCompute, body);
    EXPECT_EQ(AskCloud(Cloud::kAws, service.Ask()).status().code(), absl::StatusCode::kInvalidArgument) << body;
    EXPECT_EQ(AskCloud(Cloud::kAzure, service.Ask()).status().code(), absl::StatusCode::kInvalidArgument) << body;
  }
  FakeService nothing;
  for (const Cloud cloud : {Cloud::kAws, Cloud::kGcp, Cloud::kAzure}) {
    EXPECT_EQ(AskCloud(cloud, nothing.Ask()).status().code(), absl::StatusCode::kNotFound);
  }
  nothing.answers[kToken] = nothing.answers[kCompute] = {.status = 302};
  EXPECT_EQ(AskCloud(Cloud::kAws, nothing.Ask()).status().code(), absl::StatusCode::kUnavailable);
}

TEST(AskCloud, OmitsInvalidIdentifiers) {
  FakeService service;
  service.Add(kToken, "token");
  service.Add(kDocument, "{\"instanceId\":\"i-1\",\"region\":\"eu\\u001b[2J\",\"accountId\":\"" +
                             std::string(300, '1') + "\",\"imageId\":\"\\u00e4\"}");
  auto attributes = AskCloud(Cloud::kAws, service.Ask());
  ASSERT_TRUE(attributes.ok()) << attributes.status();
  EXPECT_EQ(*attributes, (Attributes{{"cloud.platform", "aws_ec2"}, {"cloud.provider", "aws"}, {"host.id", "i-1"}}));
}

}  // namespace
}  // namespace tributary
