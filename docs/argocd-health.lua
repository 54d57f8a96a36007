-- Health of a ClusterManagementAddOn for Argo CD.
-- In the ConfigMap argocd-cm:
--   resource.customizations.health.addon.open-cluster-management.io_ClusterManagementAddOn: |
--     <this file>
local health = { status = "Progressing", message = "the manager has not processed the add-on yet" }
local status = obj.status
if status == nil or (status.conditions == nil and status.installProgressions == nil) then
  return health
end
local placements = obj.spec ~= nil and obj.spec.installStrategy ~= nil
    and obj.spec.installStrategy.placements or {}
local function by_type(conditions)
  local found = {}
  for _, condition in ipairs(conditions or {}) do
    found[condition.type] = condition
  end
  return found
end
local function name_of(placement)
  return placement.namespace .. "/" .. placement.name
end

-- On an Open Cluster Management hub, an add-on has no conditions, but its placements have.
if status.conditions == nil then
  local progressions = {}
  for _, progression in ipairs(status.installProgressions) do
    progressions[name_of(progression)] = by_type(progression.conditions)
  end
  local waiting
  for _, placement in ipairs(placements) do
    local name = name_of(placement)
    local found = progressions[name] or {}
    local progressing = found.Progressing
    if progressing == nil or (progressing.observedGeneration ~= nil
        and progressing.observedGeneration ~= obj.metadata.generation) then
      waiting = waiting or health.message
    elseif found.Stalled ~= nil and found.Stalled.status == "True" then
      return { status = "Degraded", message = name .. ": " .. found.Stalled.message }
    elseif progressing.status ~= "False" then
      waiting = waiting or name .. ": " .. progressing.message
    end
  end
  if waiting == nil then
    return { status = "Healthy", message = "every placement has completed the desired revision" }
  end
  health.message = waiting
  return health
end

-- Conditions of an earlier generation are about another spec.
if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return health
end
local found = by_type(status.conditions)
if found.Stalled ~= nil and found.Stalled.status == "True" then
  return { status = "Degraded", message = found.Stalled.message }
end
if found.Succeeded ~= nil and found.Succeeded.status == "True" then
  return { status = "Healthy", message = found.Succeeded.message }
end
if found.Succeeded ~= nil then
  health.message = found.Succeeded.message
end
-- A placement or a policy pauses it, and nothing moves any more.
if found.Reconciling ~= nil and found.Reconciling.reason == "Paused" then
  health.status = "Suspended"
end
return health
