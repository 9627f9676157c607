#include "kernel-collector/direct/node_resources.h"

#include <optional>
#include <string>
#include <string_view>

#include "profile/cgroup_path.h"
#include "profile/program_name.h"
#include "profile/resource_merger.h"

namespace tributary {

Attributes NodeResources::Of(const Process& process, const Dictionary& dictionary) const {
  const CgroupPath cgroup = ParseCgroupPath(dictionary.string(process.cgroup_path));
  std::string_view container_id = dictionary.string(process.container_id);
  if (container_id.empty()) container_id = cgroup.container_id;
  std::optional<Entity> container;
  if (!container_id.empty()) container = feed_.Find(EntityKind::kContainer, container_id);
  const std::optional<Entity> host = feed_.Find(EntityKind::kHost, session_.node_id);
  const auto of_container = [&container](std::string_view key) {
    return container ? FindAttribute(container->attributes, key) : std::string_view();
  };

  ResourceMerger merger;
  merger.AddIds(cgroup, container_id);
  const auto add = [&merger](const std::optional<Entity>& entity) {
    if (!entity) return;
    for (const auto& [key, value] : entity->attributes) {
      if (key != kImageVersion) merger.AddOf(entity->kind, key, value);
    }
  };
  add(container);
  add(host);
  merger.Add(ResourceMerger::kWhere, "container.image.tags", of_container("container.image.tag"));
  merger.Add(ResourceMerger::kWhere, "container.runtime.name", cgroup.runtime);
  merger.AddHost(session_.host_name, session_.node_id);
  const Attributes own = DecodeAttributes(dictionary.string(process.attributes));
  merger.AddOwn(own);
  const std::string_view program =
      ProgramName(dictionary.string(process.executable_path), dictionary.string(process.comm), process.parent);
  const ServiceIdentity service = MakeServiceIdentity(of_container, cgroup.systemd_unit, program);
  merger.AddService(service);
  return merger.Merged();
}

}  // namespace tributary
