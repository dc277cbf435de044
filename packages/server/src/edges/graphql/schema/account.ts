/** The caller's user, and its secrets. */
export const accountTypes = `
input SecretCreateInput { name: String! value: String! description: String }
type Secret { id: ID name: String description: String createdAt: String }

input UpdateUserSettingsInput {
  "SSH keys, one a line."
  pubKey: String
}
type ServerlessDiscount { discountFactor: Float type: String expirationDate: String }

type Myself {
  id: String
  "SSH keys, one a line."
  pubKey: String
  endpoints: [Endpoint]
  "Null if there is none for this key."
  endpoint(id: String!): Endpoint
  networkVolumes: [NetworkVolume]
  podTemplates: [Template]
  containerRegistryCreds: [ContainerRegistryAuth]
  secrets: [Secret]
  pods(input: PodFilter): [Pod!]
  flashApps: [FlashApp!]
  datacenters: [DataCenter!]
  "Null: there is no discount."
  serverlessDiscount: ServerlessDiscount
  "Null: users here have a name, and no address."
  email: String
  clientBalance: Float
  currentSpendPerHr: Float
  spendLimit: Float
  notifyPodsStale: Boolean
  notifyPodsGeneral: Boolean
  notifyLowBalance: Boolean
  machineQuota: Int
  referralEarned: Float
  signedTermsOfService: Boolean
  savingsPlans: [JSON]
}
`;
