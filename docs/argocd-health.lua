-- Health of a ClusterManagementAddOn for Argo CD.
-- In the ConfigMap argocd-cm:
--   resource.customizations.health.addon.open-cluster-management.io_ClusterManagementAddOn: |
--     <this file>
local health = { status = "Progressing", message = "the manager has not processed the add-on yet" }
local status = obj.status
if status == nil or status.conditions == nil then
  return health
end
-- Conditions of an earlier generation are about another spec.
if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return health
end
local found = {}
for _, condition in ipairs(status.conditions) do
  found[condition.type] = condition
end
if found.Stalled ~= nil and found.Stalled.status == "True" then
  return { status = "Degraded", message = found.Stalled.message }
end
if found.Succeeded ~= nil and found.Succeeded.status == "True" then
  return { status = "Healthy", message = found.Succeeded.message }
end
for _, placement in ipairs(obj.spec ~= nil and obj.spec.installStrategy ~= nil
    and obj.spec.installStrategy.placements or {}) do
  local strategy = placement.rolloutStrategy
  if strategy ~= nil and strategy.paused then
    return { status = "Suspended", message = placement.namespace .. "/" .. placement.name .. " is paused" }
  end
end
if found.Succeeded ~= nil then
  health.message = found.Succeeded.message
end
return health
