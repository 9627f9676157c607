#include "kernel-collector/metadata/cloud.h"

#include "base/status.h"
#include "kernel-collector/metadata/cloud_services.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

// The asset tag of Azure's machines. Other machines of Microsoft's hypervisor do not have it.
constexpr std::string_view kAzureAssetTag = "7783-7084-3265-9085-8269-3286-77";

std::string LowerLine(const std::string& path) {
  auto text = ReadSmallFile(path, 4096);
  if (!text.ok()) return "";
  std::string line = text->substr(0, text->find('\n'));
  for (char& c : line) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return line;
}

}  // namespace

std::string_view CloudName(Cloud cloud) {
  switch (cloud) {
    case Cloud::kNone:
      break;
    case Cloud::kAws:
      return "aws";
    case Cloud::kGcp:
      return "gcp";
    case Cloud::kAzure:
      return "azure";
  }
  return "none";
}

Cloud DetectCloud(const std::string& sys_root) {
  const std::string dmi = sys_root + "/class/dmi/id/";
  const std::string vendor = LowerLine(dmi + "sys_vendor");
  // Nitro machines have the vendor's name. Xen machines have it in the BIOS version, or have a UUID that begins with
  // "ec2".
  if (vendor == "amazon ec2" || LowerLine(dmi + "bios_vendor") == "amazon ec2" ||
      LowerLine(dmi + "board_vendor") == "amazon ec2") {
    return Cloud::kAws;
  }
  if (vendor == "xen" && (LowerLine(dmi + "bios_version").find("amazon") != std::string::npos ||
                          LowerLine(sys_root + "/hypervisor/uuid").starts_with("ec2"))) {
    return Cloud::kAws;
  }
  if (vendor == "google" && LowerLine(dmi + "product_name").starts_with("google")) return Cloud::kGcp;
  if (vendor == "microsoft corporation" && LowerLine(dmi + "chassis_asset_tag") == kAzureAssetTag) return Cloud::kAzure;
  return Cloud::kNone;
}

HttpEndpoint InstanceService(Cloud) { return {.address = "169.254.169.254"}; }

absl::StatusOr<Attributes> AskCloud(Cloud cloud, const HttpAsk& ask) {
  switch (cloud) {
    case Cloud::kNone:
      break;
    case Cloud::kAws:
      return AskAws(ask);
    case Cloud::kGcp:
      return AskGcp(ask);
    case Cloud::kAzure:
      return AskAzure(ask);
  }
  return Error(absl::StatusCode::kInvalidArgument, "no cloud provider is chosen");
}

}  // namespace tributary
