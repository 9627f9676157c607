"""ServiceAccounts at a cluster, with the roles of a deployment or with a part of them."""

import copy

from cluster import wait_for

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def without(role, permission):
    """Returns the rules of a role without one (API group, resource, verb)."""
    group, resource, verb = permission
    rules = []
    for rule in copy.deepcopy(role["rules"]):
        if group in rule["apiGroups"] and resource in rule["resources"]:
            rule["resources"].remove(resource)
            rules.append({"apiGroups": [group], "resources": [resource], "verbs": [v for v in rule["verbs"] if v != verb]})
        rules.append(rule)
    return [rule for rule in rules if rule["resources"] and rule["verbs"]]


class Accounts:
    """`documents`: a deployment with the ServiceAccount `name`, its ClusterRole and its ClusterRoleBinding."""

    def __init__(self, cluster, directory, documents, name):
        self.cluster, self.directory = cluster, directory
        by_key = {(d["kind"], d["metadata"]["name"]): d for d in documents}
        self.account = by_key["ServiceAccount", name]
        self.role = by_key["ClusterRole", f"tributary-{name}"]
        self.binding = by_key["ClusterRoleBinding", f"tributary-{name}"]
        self.namespace = self.account["metadata"]["namespace"]
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def kubeconfig(self):
        """Makes the deployment's own objects. Returns a kubeconfig with the ServiceAccount's token."""
        return self._add(self.account, self.role, self.binding)

    def kubeconfig_without(self, permission):
        """The same with another ServiceAccount, whose role lacks one (API group, resource, verb)."""
        account, role, binding = (copy.deepcopy(d) for d in (self.account, self.role, self.binding))
        name = "-".join(filter(None, (account["metadata"]["name"], "without", *permission)))
        for document in (account, role, binding):
            document["metadata"]["name"] = name
        binding["subjects"][0]["name"] = binding["roleRef"]["name"] = name
        role["rules"] = without(self.role, permission)
        return self._add(account, role, binding)

    def _add(self, account, role, binding):
        name = account["metadata"]["name"]
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        self.cluster.call("POST", accounts, account)
        self.cluster.call("POST", f"{RBAC}/clusterroles", role)
        self.cluster.call("POST", f"{RBAC}/clusterrolebindings", binding)
        self._wait_until_allowed(name, role["rules"][-1])
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.directory / f"{name}.token"
        token.write_text(self.cluster.call("POST", f"{accounts}/{name}/token", request)["status"]["token"])
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(self.cluster.kubeconfig(token).read_text())
        return path

    def _wait_until_allowed(self, name, rule):
        """The API server's authorizer learns of a new role a moment later."""
        question = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": f"system:serviceaccount:{self.namespace}:{name}",
            "resourceAttributes": {"group": rule["apiGroups"][0], "resource": rule["resources"][0], "verb": rule["verbs"][0]}}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        wait_for(lambda: self.cluster.call("POST", path, question)["status"]["allowed"], 30, f"the role of {name}")
