import { Modal } from "../modal.js";

const keys = [
  ["Ctrl K or ⌘K", "go to an endpoint, a page or a job"],
  ["/", "filter the list of this page"],
  ["?", "show these keys"],
  ["Esc", "close what is open"],
] as const;

export const KeysDialog = ({ close }: { readonly close: () => void }) => (
  <Modal title="Keys" isOpen close={close}>
    <dl className="keys">
      {keys.map(([key, words]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{words}</dd>
        </div>
      ))}
    </dl>
  </Modal>
);
